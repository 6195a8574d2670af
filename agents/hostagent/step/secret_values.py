"""The values of the secrets that a plan names: only in the memory of the supervisor.

They come from the input of `start`, and are in no file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import BinaryIO, NamedTuple

from ..errors import BadArgument
from ..redaction import Redactor

#: More than all secrets of a project together.
MOST_BYTES = 4 << 20


class SecretValues(NamedTuple):
    """`redactor` replaces the values in all output."""

    values: Mapping[str, str]
    redactor: Redactor


NO_SECRETS = SecretValues({}, Redactor())


def read_secret_values(source: BinaryIO, names: Collection[str]) -> SecretValues:
    """Read the values of these secrets as a JSON object; BadArgument names the missing ones."""
    data = source.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadArgument(f"the secrets have more than {MOST_BYTES} bytes")
    try:
        given = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        # The text of the error could contain a value.
        raise BadArgument("expected the secrets as a JSON object of names and values")
    missing = sorted(set(names) - set(given))
    if missing:
        raise BadArgument(f"the input lacks the values of these secrets: {', '.join(missing)}")
    values = {name: given[name] for name in names}
    return SecretValues(values, Redactor(values.values()))
