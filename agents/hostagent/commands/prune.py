"""The command `prune`: remove files of old jobs from the host."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

from .. import lock
from ..builds.repositories import forget_worktrees
from ..files import remove_tree
from ..paths import DATA, DONE, StepDir, list_steps

#: Files that can be sent or built again; the least recently used are removed first.
RENEWABLE = ("builds", "installs", "tools", "sources", "bundles", "agents", DATA)
#: A job that was polled within this time may have results that are not fetched yet.
FETCHED_S = 3600.0
_DAY_S = 86_400


class Item(NamedTuple):
    """A file or folder that is removed as a whole; a lower `rank` is removed first."""

    path: Path
    used: float
    rank: int


def prune(root: Path, options: Namespace) -> dict[str, Any]:
    """Return {"removed": [path], "bytes": size of what is left}."""
    removed, left = remove_old_items(root, options.keep_days, options.limit_bytes)
    forget_worktrees(root)
    return {"removed": removed, "bytes": left}


def remove_old_items(
    root: Path, keep_days: float, limit_bytes: Optional[int] = None
) -> tuple[list[str], int]:
    """Remove items unused for `keep_days`, then the least recently used down to `limit_bytes`.

    Returns the removed paths and the remaining bytes. Repositories are removed last. While a step
    is live, only other jobs are removed, because the step may use all other items. The limit does
    not remove jobs that were polled within the last hour.
    """
    now = time.time()
    items = sorted(_iterate_items(root), key=lambda item: (item.rank, item.used))
    old = [item for item in items if item.used <= now - keep_days * _DAY_S]
    removed = [item for item in old if _remove(item.path)]
    left = measure_size(root)
    for item in items:
        if limit_bytes is None or left <= limit_bytes:
            break
        if item in removed or (_is_job(item) and item.used > now - FETCHED_S):
            continue
        gain = measure_size(item.path)
        if _remove(item.path):
            removed.append(item)
            left -= gain
    return [str(item.path.relative_to(root)) for item in removed], left


def measure_size(path: Path) -> int:
    """Return the bytes on the disk of a file or folder; links are not followed."""
    total, remaining = 0, [path]
    while remaining:
        entry = remaining.pop()
        with contextlib.suppress(OSError):
            status = entry.lstat()
            total += getattr(status, "st_blocks", 0) * 512
            if stat.S_ISDIR(status.st_mode):
                remaining += _list_entries(entry)
    return total


def _list_entries(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []


def _iterate_items(root: Path) -> Iterator[Item]:
    live = {step.path.parent for step in list_steps(root) if _is_live(step)}
    for path in sorted(root.glob("jobs/*")):
        if path not in live:
            yield Item(path, _read_last_poll(path), 0)
    if live or lock.is_held(root / "host.lock"):
        return
    for kind in RENEWABLE:
        for path in sorted(root.glob(f"{kind}/*")):
            if not _is_running_agent(path):
                yield Item(path, _read_last_use(path), 0)
    for path in sorted(root.glob("repositories/*")):
        yield Item(path, _read_last_use(path), 1)


def _is_live(step: StepDir) -> bool:
    return lock.is_held(step.lock)


def _is_job(item: Item) -> bool:
    return item.path.parent.name == "jobs"


def _read_last_poll(job: Path) -> float:
    polls = [path.stat().st_mtime for path in job.glob("*/keepalive")]
    return max([job.stat().st_mtime, *polls])


def _read_last_use(path: Path) -> float:
    """Return the time of the last use: of builds and installs that of `.done`, else that of a file.

    The access time of a folder is meaningless, because this function reads it.
    """
    done = path / DONE
    if done.exists():
        return done.stat().st_mtime
    files = [path] if path.is_file() else [one for one in _list_entries(path) if one.is_file()]
    times = [time for file in files for time in _read_times(file)]
    return max([path.lstat().st_mtime, *times])


def _read_times(file: Path) -> tuple[float, float]:
    status = file.stat()
    return status.st_mtime, status.st_atime


def _is_running_agent(path: Path) -> bool:
    """Return whether it is the running agent."""
    # Both the zip file and its unpacked folder.
    return path.parent.name == "agents" and str(path.with_suffix("")) in __file__


def _remove(path: Path) -> bool:
    """Return False if it could not be removed completely."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)
    return not path.exists()
