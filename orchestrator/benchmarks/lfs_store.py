"""Objects of Git LFS on the disk, in the layout of git-lfs: `lfs/objects` in a git folder.

Each object is named by the SHA-256 of its content. An object that is not complete is in
`lfs/incomplete`, where the next fetch continues it.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from orchestrator.benchmarks.lfs_pointers import LfsPointer
from orchestrator.core.errors import InvalidRequestError

#: Incomplete objects that no fetch continued for so long are removed.
KEEP_INCOMPLETE_S = 86_400.0
CHUNK_BYTES = 1 << 18


class WrongObjectError(InvalidRequestError):
    """The content is not that of the pointer, so nothing of it is kept."""


class IncompleteObject:
    """An object that is being written. `size`: the bytes that are there, also of earlier times."""

    def __init__(self, file: IO[bytes], pointer: LfsPointer) -> None:
        self._file, self._pointer = file, pointer
        self._digest, self.size = hashlib.sha256(), 0
        while data := file.read(CHUNK_BYTES):
            self._digest.update(data)
            self.size += len(data)

    @property
    def missing_bytes(self) -> int:
        return self._pointer.size - self.size

    def restart(self) -> None:
        """Forget what is there."""
        self._file.truncate(0)
        self._file.seek(0)
        self._digest, self.size = hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        """Add data; WrongObjectError if that is more than the pointer states."""
        if len(data) > self.missing_bytes:
            raise WrongObjectError(
                f"the server sent more than the {self._pointer.size:,} bytes of the pointer"
            )
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)

    def check(self) -> None:
        """Raise WrongObjectError unless it is the content of the pointer."""
        if self.missing_bytes:
            raise WrongObjectError(
                f"the server sent {self.size:,} bytes instead of the {self._pointer.size:,} bytes "
                "of the pointer"
            )
        if self._digest.hexdigest() != self._pointer.oid:
            raise WrongObjectError(
                f"the server sent other content than the pointer states (SHA-256 "
                f"{self._digest.hexdigest()[:12]}… instead of {self._pointer.oid[:12]}…)"
            )


@dataclass(frozen=True, slots=True)
class LfsStore:
    """The objects in a git folder: of a mirror, or of a repository on this machine."""

    git_folder: Path

    def has(self, pointer: LfsPointer) -> bool:
        """Return whether the object is complete."""
        try:
            facts = self._locate(pointer).lstat()
        except OSError:
            return False
        return stat.S_ISREG(facts.st_mode) and facts.st_size == pointer.size

    def open(self, pointer: LfsPointer) -> BinaryIO:
        """Open a complete object; a link is not followed."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.fdopen(os.open(self._locate(pointer), flags), "rb")

    def measure_missing(self, pointer: LfsPointer) -> int:
        """Return the bytes of an object that are not there yet."""
        try:
            return max(0, pointer.size - self._locate_incomplete(pointer).stat().st_size)
        except FileNotFoundError:
            return pointer.size

    @contextlib.contextmanager
    def adding(self, pointer: LfsPointer) -> Iterator[IncompleteObject]:
        """Provide an object to complete; at the end of the block it is checked and stored.

        After WrongObjectError nothing is kept, after any other error all that was written. The
        caller holds the mirror's lock.
        """
        path, part = self._locate(pointer), self._locate_incomplete(pointer)
        for folder in (path.parent, part.parent):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            with open(part, "a+b") as file:
                file.seek(0)
                written = IncompleteObject(file, pointer)
                if written.missing_bytes < 0:
                    written.restart()
                yield written
                written.check()
                # A complete object is never read again to check it.
                file.flush()
                os.fsync(file.fileno())
        except BaseException as error:
            if isinstance(error, WrongObjectError) or not part.stat().st_size:
                part.unlink()
            raise
        part.replace(path)

    def remove_old_parts(self) -> None:
        """Remove incomplete objects that no fetch continued. The caller holds the mirror's lock."""
        old = time.time() - KEEP_INCOMPLETE_S
        for path in self._incomplete.glob("*"):
            if path.stat().st_mtime < old:
                path.unlink()

    @property
    def _incomplete(self) -> Path:
        return self.git_folder / "lfs" / "incomplete"

    def _locate(self, pointer: LfsPointer) -> Path:
        oid = pointer.oid
        return self.git_folder / "lfs" / "objects" / oid[:2] / oid[2:4] / oid

    def _locate_incomplete(self, pointer: LfsPointer) -> Path:
        return self._incomplete / pointer.oid
