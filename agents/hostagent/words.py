"""The words that stand for something in an argument list; other braces stay as they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence


def replace(argv: Sequence[str], words: Mapping[str, object]) -> list[str]:
    """`argv` with `{word}` replaced in each argument, for exactly the words given and {python}."""
    return [_one(argument, {"python": sys.executable, **words}) for argument in argv]


def _one(argument: str, words: Mapping[str, object]) -> str:
    for word, value in words.items():
        argument = argument.replace("{%s}" % word, str(value))  # noqa: UP031
    return argument
