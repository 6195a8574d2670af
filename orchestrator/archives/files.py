"""Write files atomically and readable only for their owner; copy data with its digest."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from orchestrator.core.errors import ConflictError, InvalidRequestError

_PART = 1 << 20


def copy_stream(
    source: IO[bytes], out: IO[bytes] | None, progress: Callable[[int], None]
) -> tuple[int, str]:
    """Copy `source` to `out` (if given).

    Return size and SHA-256. `progress` receives the size so far.
    """
    size, digest = 0, hashlib.sha256()
    while part := source.read(_PART):
        if out is not None:
            out.write(part)
        digest.update(part)
        progress(size := size + len(part))
    return size, digest.hexdigest()


@contextlib.contextmanager
def write_whole_file(path: Path, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Write a file that appears under its name only if the block succeeds, after fsync."""
    if path.exists() and not overwrite:
        raise ConflictError(f"{path} already exists; name another file, or use --overwrite")
    try:
        # It has mode 0600, because its content includes hashes of passwords and addresses.
        descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
