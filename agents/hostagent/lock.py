"""A lock that ends with the process that holds it, however that process ends."""

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

#: Windows keeps others from reading locked bytes, so one far behind the note is locked.
_FAR = 1 << 30
#: Whoever asks whether a lock is held has it for an instant; that must not look like a holder.
PATIENCE_S = 0.5


def take(path: Path, note: str = "", patience_s: float = 0.0) -> Optional[int]:
    """A descriptor that holds the lock until it is closed, or None where another holds it.

    `note` becomes the text of the file, for `holder`. A real holder is waited for `patience_s`.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + patience_s
    while not _try(fd):
        if time.monotonic() >= deadline:
            os.close(fd)
            return None
        time.sleep(0.005)
    if note:
        os.ftruncate(fd, 0)
        os.write(fd, note.encode())
    return fd


def _try(fd: int, shared: bool = False) -> bool:
    """Windows has no shared lock here: those who only look exclude each other for an instant."""
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
    """True while some process holds the lock; looking takes a shared lock for an instant."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _try(fd, shared=True)
    finally:
        os.close(fd)


def holder(path: Path) -> str:
    """What the last holder noted; nothing where it noted nothing."""
    with contextlib.suppress(OSError):
        return path.read_text("utf-8", "replace").strip()
    return ""
