"""Files that are there completely or not at all, and the ends of long ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON so that no reader ever sees a part of it; NaN is refused."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def tail_bytes(path: Path, limit: int) -> bytes:
    """The last `limit` bytes of the file, nothing where there is no such file."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
            return file.read(limit)
    except OSError:
        return b""


def tail_text(path: Path, limit: int = 4096) -> str:
    return tail_bytes(path, limit).decode("utf-8", "replace")
