"""The folder of a bare mirror: its lock, its size, and the leftovers of failed fetches."""

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from orchestrator.core.errors import ConflictError

#: How long a fetch waits for another fetch of the same mirror.
LOCK_WAIT_S = 10.0
_LOCK_TRY_S = 0.1
#: Only a fetch creates most locks; other calls hold those of single refs for milliseconds.
_STALE_LOCK_S = 60.0
#: In older versions the names of mirrors had no digest of the URL.
_NAME = re.compile(r"([0-9]{1,18})(?:-[0-9a-f]{16})?\.git")

#: Next to a mirror: an incomplete clone, and the mirror that a complete one replaced.
_CLONE = ".new"
_REPLACED = ".old"


class MirrorBusyError(ConflictError):
    """Another fetch of the mirror is running, in this process or in another one."""


def build_mirror_name(project_id: int, url: str) -> str:
    """Return the name of a folder in `repositories` of the data folder."""
    return f"{project_id}-{sha256(url.encode()).hexdigest()[:16]}.git"


def parse_mirror_project(name: str) -> int | None:
    """Return the id of the project that a folder belongs or belonged to; None for other names."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


@contextlib.contextmanager
def lock_mirror(mirror: Path, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Lock the mirror for this thread; MirrorBusyError if another fetch does not end soon."""
    mirror.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_s
    with open(f"{mirror}.lock", "w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise MirrorBusyError(
                        "another fetch of this repository is running; try again when it has ended"
                    ) from None
                time.sleep(_LOCK_TRY_S)
        yield


@contextlib.contextmanager
def open_pack_file(data_folder: Path) -> Iterator[BinaryIO]:
    """Open a file for an archive or a bundle without a name, so that it ends with its process.

    It is in the data folder, which has space for mirrors; temporary files may be in memory.
    """
    folder = data_folder / "packed"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        yield file


def measure_folder(folder: Path) -> int:
    """Return the bytes that a folder uses on the disk; files that vanish meanwhile count 0."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total


def remove_leftovers(mirror: Path) -> None:
    """Remove leftovers of a killed or failed fetch: incomplete packs and stale locks.

    The caller holds the mirror's lock.
    """
    objects = mirror / "objects"
    unfinished = (*objects.glob("pack/tmp_*"), *objects.glob("pack/.tmp-*"), *objects.glob("tmp_*"))
    for path in unfinished:
        _remove(path)
    old = time.time() - _STALE_LOCK_S
    for path in mirror.rglob("*.lock"):
        with contextlib.suppress(FileNotFoundError):
            if not _is_single_ref_lock(path, mirror) or path.stat().st_mtime < old:
                path.unlink()


def build_clone_path(mirror: Path) -> Path:
    """Return where a new clone is written until it replaces the mirror."""
    return Path(f"{mirror}{_CLONE}")


def strip_clone_suffix(name: str) -> str:
    """Return the name of the mirror for the name of a mirror, its clone or its old content."""
    return name.removesuffix(_CLONE).removesuffix(_REPLACED)


def replace_mirror(mirror: Path) -> None:
    """Replace the mirror, which may be missing, by its new clone.

    The caller holds the mirror's lock.
    """
    replaced = Path(f"{mirror}{_REPLACED}")
    with contextlib.suppress(FileNotFoundError):
        mirror.rename(replaced)
    build_clone_path(mirror).rename(mirror)
    remove_clones(mirror)


def remove_clones(mirror: Path) -> None:
    """Remove what an ended clone left next to the mirror. The caller holds the mirror's lock."""
    for suffix in (_CLONE, _REPLACED):
        shutil.rmtree(f"{mirror}{suffix}", ignore_errors=True)


def remove_mirror(mirror: Path) -> None:
    remove_clones(mirror)
    shutil.rmtree(mirror, ignore_errors=True)


def _is_single_ref_lock(lock: Path, mirror: Path) -> bool:
    """Return whether `Repository.bundle` may hold it, which does not take the mirror's lock."""
    return lock.parent == mirror / "refs" / "pitwall"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
