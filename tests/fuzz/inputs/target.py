"""A fuzzed parser: its samples, and its documented errors."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A parser with its samples and its permitted errors.

    `samples` are real inputs, created once per process; `change` makes one input from one of them.
    `read` gets the input and an empty folder, below which alone it may write. It may raise
    `errors`, which its documentation names, and nothing else. `share`: the relative number of its
    inputs.
    """

    name: str
    samples: Callable[[], Sequence[Any]]
    change: Callable[[random.Random, Any, Sequence[Any]], Any]
    read: Callable[[Any, Path], object]
    errors: tuple[type[BaseException], ...]
    share: int = 1
