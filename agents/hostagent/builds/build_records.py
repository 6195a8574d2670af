"""What is stored next to a tree about its build: digests that identify it, and its time."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Optional

from ..files import write_json
from ..paths import build_dir

#: Next to a complete tree.
DIGESTS = "digests.json"
#: Next to a tree whose steps ran, also if they failed.
PERIOD = "period.json"
#: More builds than a host ever keeps.
_MAX_BUILDS = 10_000


class BuildDigests(NamedTuple):
    """SHA-256 in hexadecimal digits, each including the name of the install.

    `source`: the files of the commit, the build steps and their environment. `build`: the files of
    the tree after the build steps, without `.git` and Python's caches.
    """

    source: str
    build: str


class Period(NamedTuple):
    """Unix seconds, by the clock of the host."""

    began: float
    ended: float


def write_digests(root: Path, tree: str, digests: BuildDigests) -> None:
    write_json(build_dir(root, tree) / DIGESTS, digests._asdict())


def read_digests(root: Path, tree: str) -> Optional[BuildDigests]:
    """Return the digests of a build; None if it is incomplete."""
    try:
        return BuildDigests(**json.loads((build_dir(root, tree) / DIGESTS).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


@contextlib.contextmanager
def record_period(root: Path, tree: str) -> Iterator[None]:
    """Store when the steps in the block ran."""
    began = time.time()
    try:
        yield
    finally:
        period = Period(began, time.time())
        write_json(build_dir(root, tree) / PERIOD, period._asdict())


def read_period(root: Path, tree: str) -> Optional[Period]:
    """Return when the steps of a build ran; None if they did not end."""
    return _read_period(build_dir(root, tree) / PERIOD)


def read_all_periods(root: Path) -> Iterator[Period]:
    """Yield the periods of all builds on the host."""
    for number, path in enumerate((root / "builds").glob(f"*/{PERIOD}")):
        if number >= _MAX_BUILDS:
            return
        period = _read_period(path)
        if period is not None:
            yield period


def _read_period(path: Path) -> Optional[Period]:
    try:
        return Period(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
