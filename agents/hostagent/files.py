"""Write files atomically, remove trees, and read the tails of files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

#: A disk with less free space counts as full: compilers and package managers fail before it has
#: none. On a small disk it is this share.
FULL_BYTES = 256 * 2**20
FULL_SHARE = 0.02


def count_lacking_bytes(root: Path) -> int:
    """Return how much space has to be freed until the disk no longer counts as full."""
    disk = shutil.disk_usage(root)
    return max(0, int(min(FULL_BYTES, FULL_SHARE * disk.total)) - disk.free)


def describe_full_disk(root: Path) -> str:
    """Return the error message if the disk is full, else "".

    On a full disk most programs fail without a message.
    """
    if not count_lacking_bytes(root):
        return ""
    free = shutil.disk_usage(root).free
    return f"no space is left on the disk of {root} ({free / 2**20:.0f} MiB free)"


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON, atomically; NaN is refused."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def remove_tree(path: Path) -> None:
    """Remove the folder with its content, as far as possible.

    Measured code may nest folders deeper than Python can follow; `rm` can remove them.
    """
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    rm = shutil.which("rm") if path.exists() else None
    if rm is not None:
        subprocess.run([rm, "-rf", "--", str(path)], stderr=subprocess.DEVNULL, check=False)


def append_file(source: Path, target: Path) -> None:
    """Append the content of `source`, if it exists, to `target`."""
    with (
        contextlib.suppress(FileNotFoundError),
        open(source, "rb") as read,
        open(target, "ab") as to,
    ):
        shutil.copyfileobj(read, to)


def append_bytes(path: Path, content: bytes, *, limit: int) -> None:
    """Append to the file until it has `limit` bytes; the rest is left out."""
    with open(path, "ab") as file:
        file.write(content[: max(0, limit - file.tell())])


def read_tail_bytes(path: Path, limit: int) -> bytes:
    """Return the last `limit` bytes of the file; empty if it does not exist."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
            return file.read(limit)
    except OSError:
        return b""


def keep_tail(path: Path, limit: int) -> None:
    """Shorten the file to its last `limit` bytes; a missing file stays missing."""
    if path.exists() and path.stat().st_size > limit:
        write_bytes(path, read_tail_bytes(path, limit))


def read_tail_text(path: Path, limit: int = 4096) -> str:
    return read_tail_bytes(path, limit).decode("utf-8", "replace")
