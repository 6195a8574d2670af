"""Replace placeholders in an argument list; other braces stay as they are."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence


def fill_placeholders(argv: Sequence[str], placeholders: Mapping[str, object]) -> list[str]:
    """`argv` with `{word}` replaced in each argument, for exactly the words given and {python}.

    What a word stands for is not searched for words again.
    """
    known = {"{%s}" % name: str(value) for name, value in placeholders.items()}  # noqa: UP031
    known.setdefault("{python}", sys.executable)
    pattern = re.compile("|".join(map(re.escape, known)))
    return [pattern.sub(lambda status: known[status.group()], argument) for argument in argv]
