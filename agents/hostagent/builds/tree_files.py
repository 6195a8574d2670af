"""The files of a tree in a fixed order, and digests of them.

Measured code may have written the tree, so links are not followed, and sizes are limited.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import BuildFailed
from .build_steps import Heartbeat

#: A larger tree is not a build, but an attempt to occupy the agent.
MAX_BYTES = 32 << 30
MAX_ENTRIES = 1_000_000
#: Python writes these next to sources at any time; git writes `.git`, which differs by commit.
_SKIPPED_FOLDER = "__pycache__"
_SKIPPED_AT_TOP = ".git"
_CHUNK = 1 << 20


class Entry(NamedTuple):
    """A file or symbolic link: its path, and that relative to the tree."""

    path: str
    name: str
    status: os.stat_result

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.status.st_mode)

    @property
    def is_executable(self) -> bool:
        return bool(self.status.st_mode & 0o100)


def iterate_files(tree: Path) -> Iterator[Entry]:
    """Yield the regular files and links below `tree`, sorted by name within each folder.

    Leaves out `.git` at the top, each `__pycache__`, and folders that the agent may not read.
    Raises BuildFailed if another folder cannot be read, and above MAX_ENTRIES.
    """
    count, left = 0, [""]
    while left:
        folders = []
        for entry in _list_folder(tree, left.pop()):
            count += 1
            if count > MAX_ENTRIES:
                raise BuildFailed(f"{tree.name} has more than {MAX_ENTRIES:,} files and folders")
            if stat.S_ISDIR(entry.status.st_mode):
                folders.append(entry.name)
            elif stat.S_ISREG(entry.status.st_mode) or entry.is_link:
                yield entry
        left += reversed(folders)


def _list_folder(tree: Path, folder: str) -> Iterator[Entry]:
    try:
        for name in sorted(os.listdir(tree / folder)):
            relative = os.path.join(folder, name)
            if name != _SKIPPED_FOLDER and relative != _SKIPPED_AT_TOP:
                path = os.path.join(tree, relative)
                yield Entry(path, relative, os.lstat(path))
    except PermissionError:
        return
    except OSError as error:  # such as a path that is too long
        raise BuildFailed(f"a folder of {tree.name} cannot be read: {error}") from error


def compute_tree_digest(tree: Path, heartbeat: Heartbeat) -> str:
    """Return the SHA-256 over names, contents and executable bits of all files of a tree.

    It does not depend on times, owners and the place of the tree. Raises BuildFailed if it cannot
    be read, or has more than MAX_BYTES. `heartbeat` is called often, and may raise.
    """
    digest, size = hashlib.sha256(), 0
    try:
        for entry in iterate_files(tree):
            size += entry.status.st_size
            if size > MAX_BYTES:
                raise BuildFailed(f"{tree.name} has more than {MAX_BYTES >> 30} GiB")
            digest.update(describe_entry(entry, heartbeat))
    except OSError as error:
        raise BuildFailed(f"the files of the build cannot be read: {error}") from error
    return digest.hexdigest()


def describe_entry(entry: Entry, heartbeat: Heartbeat) -> bytes:
    """Return one line for a digest: kind, digest of the content, name."""
    if entry.is_link:
        kind, content = b"link", hashlib.sha256(os.fsencode(os.readlink(entry.path))).hexdigest()
    else:
        kind = b"program" if entry.is_executable else b"file"
        content = _hash_readable_file(entry.path, heartbeat)
    # A name can contain a line break, but not a null byte.
    return b"%s %s %s\0" % (kind, content.encode(), os.fsencode(entry.name))


def _hash_readable_file(path: str, heartbeat: Heartbeat) -> str:
    try:
        return hash_file(path, heartbeat)
    except PermissionError:  # the server cannot read it either
        return "unreadable"


def hash_file(path: str, heartbeat: Heartbeat) -> str:
    """Return the SHA-256 of a regular file; OSError if it is a link or larger than MAX_BYTES."""
    digest, size = hashlib.sha256(), 0
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(fd, "rb") as file:
        while chunk := file.read(_CHUNK):
            heartbeat()
            digest.update(chunk)
            size += len(chunk)
            if size > MAX_BYTES:
                raise OSError(f"{path} has more than {MAX_BYTES >> 30} GiB")
    return digest.hexdigest()
