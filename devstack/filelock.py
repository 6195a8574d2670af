"""A lock between processes that the kernel releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def try_lock(path: Path) -> int | None:
    """Return the descriptor that holds the lock, or None while another process has it.

    The lock is held until every copy of the descriptor is closed, in a child process too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def wait_for_lock(path: Path, waiting: str) -> Iterator[None]:
    """Hold the lock for the block; print `waiting` once if another process has it first."""
    descriptor = try_lock(path)
    if descriptor is None:
        print(waiting, file=sys.stderr, flush=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)
