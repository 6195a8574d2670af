"""What is fuzzed: who reads what, and which errors are its answer to what it cannot read."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`samples` are real inputs, made once a process; `change` makes one input of one of them.

    `read` is given the input and an empty folder, below which alone it may write. It may raise
    `errors`, which its documentation names, and nothing else. `share`: how many inputs it gets
    beside the others.
    """

    name: str
    samples: Callable[[], Sequence[Any]]
    change: Callable[[random.Random, Any, Sequence[Any]], Any]
    read: Callable[[Any, Path], object]
    errors: tuple[type[BaseException], ...]
    share: int = 1
