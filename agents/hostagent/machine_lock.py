"""The lock of the whole machine: at most one job measures on it at a time.

It is one file for all users, work directories and installations of Pitwall. Nothing is ever written
to it, so a file that another user created is as good as our own.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from . import lock
from .errors import AgentError, Busy

#: The lock is in the first one where all users may create files. The system removes old files
#: from /tmp, but not from the first one.
FOLDERS = (Path("/run/lock"), Path("/tmp"))
NAME = "pitwall-machine.lock"
_OPEN_TO_ALL = stat.S_ISVTX | stat.S_IRWXO
#: Neither a link nor a pipe of another user leads the agent elsewhere or makes it wait.
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FOR_ALL = 0o444
_BUSY = (
    "another job of Pitwall uses this machine, through another host, team or installation; this "
    "one waits for its end"
)


def take_machine_lock(folders: Sequence[Path] = FOLDERS) -> Optional[int]:
    """Return a descriptor that holds the lock until it is closed; Busy if another job holds it.

    None if the system has no folder for all users (Windows).
    """
    folder = next(filter(_is_open_to_all, folders), None)
    if folder is None:
        return None
    path = folder / NAME
    deadline = time.monotonic() + lock.PATIENCE_S
    while True:
        fd = _open(path)
        if lock.lock_descriptor(fd) and _is_current(fd, path):
            return fd
        os.close(fd)
        if time.monotonic() >= deadline:
            raise Busy(_BUSY)
        time.sleep(0.02)


def check_machine_lock(folders: Sequence[Path] = FOLDERS) -> None:
    """Raise Busy if a job uses the machine now."""
    fd = take_machine_lock(folders)
    if fd is not None:
        os.close(fd)


def _is_open_to_all(folder: Path) -> bool:
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) and mode & _OPEN_TO_ALL == _OPEN_TO_ALL


def _open(path: Path) -> int:
    """Open the file of the lock, and create it if there is none."""
    try:
        fd = _open_or_create(path)
    except OSError as error:
        raise AgentError(_describe_unusable(path, str(error))) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise AgentError(_describe_unusable(path, "it is no regular file"))
    return fd


def _open_or_create(path: Path) -> int:
    # Linux refuses O_CREAT for an existing file of another user in such a folder, even to root.
    try:
        return os.open(path, _FLAGS)
    except FileNotFoundError:
        pass
    try:
        fd = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _FOR_ALL)
    except FileExistsError:  # another agent was faster
        return os.open(path, _FLAGS)
    os.fchmod(fd, _FOR_ALL)  # regardless of the umask
    return fd


def _is_current(fd: int, path: Path) -> bool:
    """Return False if the file was removed after it was opened: then nobody else finds it."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return False


def _describe_unusable(path: Path, why: str) -> str:
    return (
        f"the lock of the machine cannot be used: {path}: {why}. Remove this file as its owner or "
        "as root; Pitwall creates it again"
    )
