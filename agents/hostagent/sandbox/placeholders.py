"""The words that stand for something in an argument list; other braces stay as they are."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence


def replace(argv: Sequence[str], words: Mapping[str, object]) -> list[str]:
    """`argv` with `{word}` replaced in each argument, for exactly the words given and {python}.

    What a word stands for is not searched for words again.
    """
    known = {"{%s}" % word: str(value) for word, value in words.items()}  # noqa: UP031
    known.setdefault("{python}", sys.executable)
    pattern = re.compile("|".join(map(re.escape, known)))
    return [pattern.sub(lambda found: known[found.group()], argument) for argument in argv]
