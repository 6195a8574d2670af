"""The files that a process runs from, from /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Optional

#: More of the list of mapped files, or of the arguments, is not read.
_MAX_BYTES = 4 << 20
#: The fields with permissions and path in a line of /proc/PID/maps.
_PERMISSIONS, _PATH = 1, 5


class ProcessFiles(NamedTuple):
    """Its executable, its working directory, its arguments, and the mapped files with code."""

    program: str
    folder: str
    arguments: tuple[str, ...]
    mapped: frozenset[str]


def read_process_files(pid: int) -> Optional[ProcessFiles]:
    """Return the files of a process.

    None if it has ended, if the agent may not read them, or if its paths mean something else than
    for the agent, as in a container.
    """
    process = Path("/proc", str(pid))
    try:
        if os.readlink(process / "ns/mnt") != os.readlink("/proc/self/ns/mnt"):
            return None
        if os.readlink(process / "root") != "/":
            return None
        return ProcessFiles(
            program=os.readlink(process / "exe"),
            folder=os.readlink(process / "cwd"),
            arguments=tuple(_read(process / "cmdline").rstrip("\0").split("\0")),
            mapped=frozenset(_list_mapped_code(_read(process / "maps"))),
        )
    except OSError:
        return None


def _read(path: Path) -> str:
    with open(path, "rb") as file:
        return os.fsdecode(file.read(_MAX_BYTES))


def _list_mapped_code(maps: str) -> list[str]:
    rows = [line.split(None, _PATH) for line in maps.splitlines()]
    return [
        row[_PATH]
        for row in rows
        if len(row) > _PATH and "x" in row[_PERMISSIONS] and row[_PATH].startswith("/")
    ]
