"""Replace placeholders in an argument list; other braces stay as they are."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence


def fill_placeholders(argv: Sequence[str], placeholders: Mapping[str, object]) -> list[str]:
    """Replace `{word}` in each argument of `argv`, only for {python} and the given words.

    Replaced values are not searched for placeholders again.
    """
    known = {"{%s}" % name: str(value) for name, value in placeholders.items()}  # noqa: UP031
    known.setdefault("{python}", sys.executable)
    pattern = re.compile("|".join(map(re.escape, known)))
    return [pattern.sub(lambda status: known[status.group()], argument) for argument in argv]
