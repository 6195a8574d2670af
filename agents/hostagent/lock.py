"""A file lock that is released when its process ends, in any way."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Optional

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt

#: Windows forbids reading of locked bytes, so one far after the note is locked.
_FAR = 1 << 30
#: A check whether a lock is held takes it for an instant; this must not look like a holder.
PATIENCE_S = 0.5


def take(path: Path, note: str = "", patience_s: float = 0.0) -> Optional[int]:
    """Return a descriptor that holds the lock until it is closed, or None if another process holds
    it.

    `note` becomes the text of the file, for `holder`. It waits up to `patience_s` for the lock.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + patience_s
    while not lock_descriptor(fd):
        if time.monotonic() >= deadline:
            os.close(fd)
            return None
        time.sleep(0.005)
    if note:
        os.ftruncate(fd, 0)
        os.write(fd, note.encode())
    return fd


def lock_descriptor(fd: int, shared: bool = False) -> bool:
    """Try to lock an open file; return False if another process holds the lock.

    Windows has no shared lock here: checks exclude each other for an instant.
    """
    try:
        if fcntl:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        else:
            os.lseek(fd, _FAR, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Return True while a process holds the lock; the check takes a shared lock for an instant."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not lock_descriptor(fd, shared=True)
    finally:
        os.close(fd)


def read_holder(path: Path) -> str:
    """Return the note of the last holder, or ""."""
    with contextlib.suppress(OSError):
        return path.read_text("utf-8", "replace").strip()
    return ""
