"""Removal of what old jobs left on the host."""

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
from ..paths import DONE, StepDir, all_steps

#: What the next step can have again by being sent or built; of these the longest unused goes first.
RENEWABLE = ("builds", "installs", "tools", "sources", "bundles", "agents")
#: A job looked at within this time may have results that were not fetched yet.
FETCHED_S = 3600.0
_DAY_S = 86_400


class Item(NamedTuple):
    """One thing that is removed as a whole. `rank`: of two items the lower rank goes first."""

    path: Path
    used: float
    rank: int


def prune(root: Path, options: Namespace) -> dict[str, Any]:
    """{"removed": [path], "bytes": size of what is left}."""
    removed, left = remove_old_items(root, options.keep_days, options.limit_bytes)
    forget_worktrees(root)
    return {"removed": removed, "bytes": left}


def remove_old_items(
    root: Path, keep_days: float, limit_bytes: Optional[int] = None
) -> tuple[list[str], int]:
    """Remove what was not used for `keep_days`, then the longest unused until `limit_bytes` hold.

    Returns the paths removed and the bytes left. Repositories go last. While any step is live
    only jobs of others go: it may be about to use all the rest. Nor does the limit remove jobs
    that somebody looked at within the last hour.
    """
    now = time.time()
    items = sorted(_items(root), key=lambda item: (item.rank, item.used))
    old = [item for item in items if item.used <= now - keep_days * _DAY_S]
    removed = [item for item in old if _remove(item.path)]
    left = size(root)
    for item in items:
        if limit_bytes is None or left <= limit_bytes:
            break
        if item in removed or (_is_job(item) and item.used > now - FETCHED_S):
            continue
        gain = size(item.path)
        if _remove(item.path):
            removed.append(item)
            left -= gain
    return [str(item.path.relative_to(root)) for item in removed], left


def size(path: Path) -> int:
    """Bytes on the disk of a file or of all files below a folder; links count as themselves."""
    total, left = 0, [path]
    while left:
        one = left.pop()
        with contextlib.suppress(OSError):
            steps = one.lstat()
            total += getattr(steps, "st_blocks", 0) * 512
            if stat.S_ISDIR(steps.st_mode):
                left += _entries(one)
    return total


def _entries(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []


def _items(root: Path) -> Iterator[Item]:
    live = {step.path.parent for step in all_steps(root) if _is_live(step)}
    for path in sorted(root.glob("jobs/*")):
        if path not in live:
            yield Item(path, _last_look(path), 0)
    if live or lock.is_held(root / "host.lock"):
        return
    for kind in RENEWABLE:
        for path in sorted(root.glob(f"{kind}/*")):
            if not _runs_us(path):
                yield Item(path, _last_use(path), 0)
    for path in sorted(root.glob("repositories/*")):
        yield Item(path, _last_use(path), 1)


def _is_live(step: StepDir) -> bool:
    return lock.is_held(step.lock)


def _is_job(item: Item) -> bool:
    return item.path.parent.name == "jobs"


def _last_look(job: Path) -> float:
    looks = [path.stat().st_mtime for path in job.glob("*/contact")]
    return max([job.stat().st_mtime, *looks])


def _last_use(path: Path) -> float:
    """The rest is used when a file is written or read, builds and installs when their mark is.

    The time at which a folder was read says nothing: we read it ourselves.
    """
    done = path / DONE
    if done.exists():
        return done.stat().st_mtime
    files = [path] if path.is_file() else [one for one in _entries(path) if one.is_file()]
    times = [time for file in files for time in _times(file)]
    return max([path.lstat().st_mtime, *times])


def _times(file: Path) -> tuple[float, float]:
    steps = file.stat()
    return steps.st_mtime, steps.st_atime


def _runs_us(path: Path) -> bool:
    """The agent that is at work now."""
    # Both the file and what it unpacked itself to.
    return path.parent.name == "agents" and str(path.with_suffix("")) in __file__


def _remove(path: Path) -> bool:
    """False where it cannot be removed as a whole."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)
    return not path.exists()
