"""Files of old jobs on a host: their sizes, and their removal.

The sizes of builds and installs are recorded in `sizes.json`, because these do not change. A build
of a large project has a hundred thousand files, and reading the sizes again takes minutes on a slow
disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple, Optional

from . import lock
from .files import remove_tree, write_json
from .paths import DATA, DONE, StepDir, get_host_lock, list_steps

#: Files that can be sent or built again; the least recently used are removed first.
RENEWABLE = ("builds", "installs", "tools", "sources", "bundles", "agents", DATA)
#: Folders whose complete entries do not change.
_CONSTANT = ("builds", "installs")
#: A job that was polled within this time may have results that are not fetched yet.
FETCHED_S = 3600.0
_DAY_S = 86_400
_RECORD = "sizes.json"

#: Called often; it may raise to end everything.
Tick = Callable[[], None]


def ignore_tick() -> None:
    """Do nothing."""


class Item(NamedTuple):
    """A file or folder that is removed as a whole; a lower `rank` is removed first."""

    path: Path
    used: float
    rank: int


class InUse(NamedTuple):
    """What the caller, which holds the host's lock, needs: its job, and other items."""

    job: Path
    items: Collection[Path]


class Sizes:
    """The sizes below a work directory, with the record of those that do not change."""

    def __init__(self, root: Path, tick: Tick = ignore_tick) -> None:
        self._root = root
        self.tick = tick
        self._recorded = _read_record(root / _RECORD)

    def measure(self, item: Path) -> int:
        """Return the bytes on the disk of an item."""
        if item.parent.name not in _CONSTANT or not (item / DONE).exists():
            return measure_size(item, self.tick)
        name = str(item.relative_to(self._root))
        if name not in self._recorded:
            self._recorded[name] = measure_size(item, self.tick)
        return self._recorded[name]

    def measure_all(self) -> int:
        """Return the bytes on the disk of the work directory, without those of the record."""
        total = _read_bytes(self._root)
        for entry in _list_entries(self._root):
            if entry.name in _CONSTANT:
                total += _read_bytes(entry) + sum(map(self.measure, _list_entries(entry)))
            elif entry.name != _RECORD:
                total += measure_size(entry, self.tick)
        return total

    def renew(self, item: Path) -> int:
        """Measure an item that has changed; return by how many bytes it has grown."""
        before = self._recorded.pop(str(item.relative_to(self._root)), 0)
        return self.measure(item) - before

    def forget(self, item: Path) -> None:
        """Forget an item that is removed."""
        self._recorded.pop(str(item.relative_to(self._root)), None)

    def save(self) -> None:
        """Keep the record, unless the disk is full; then the items are measured again."""
        path = self._root / _RECORD
        left = {name: size for name, size in self._recorded.items() if (self._root / name).exists()}
        if left != _read_record(path):
            with contextlib.suppress(OSError):
                write_json(path, left)


def _read_record(path: Path) -> dict[str, int]:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        record = json.loads(path.read_bytes())
        return {name: size for name, size in record.items() if isinstance(size, int)}
    return {}


def remove_old_items(
    root: Path,
    keep_days: float,
    limit_bytes: Optional[int] = None,
    *,
    in_use: Optional[InUse] = None,
    sizes: Optional[Sizes] = None,
) -> tuple[list[str], int]:
    """Remove items unused for `keep_days`, then the least recently used down to `limit_bytes`.

    Returns the removed paths and the remaining bytes. Repositories are removed last. While a step
    is live, only other jobs are removed, because the step may use all other items; a live step
    itself gives `in_use`. The limit does not remove jobs that were polled within the last hour.
    """
    now = time.time()
    sizes = sizes or Sizes(root)
    items = sorted(_iterate_items(root, in_use), key=lambda item: (item.rank, item.used))
    removed = []
    for item in items:
        sizes.tick()
        if item.used <= now - keep_days * _DAY_S and _remove(item.path):
            sizes.forget(item.path)
            removed.append(item)
    left = sizes.measure_all()
    for item in items:
        if limit_bytes is None or left <= limit_bytes:
            break
        if item in removed or (_is_job(item) and item.used > now - FETCHED_S):
            continue
        gain = sizes.measure(item.path)
        if _remove(item.path):
            sizes.forget(item.path)
            removed.append(item)
            left -= gain
    sizes.save()
    return [str(item.path.relative_to(root)) for item in removed], left


def measure_size(path: Path, tick: Tick = ignore_tick) -> int:
    """Return the bytes on the disk of a file or folder; links are not followed."""
    total, remaining = 0, [path]
    while remaining:
        entry = remaining.pop()
        with contextlib.suppress(OSError):
            status = entry.lstat()
            total += getattr(status, "st_blocks", 0) * 512
            if stat.S_ISDIR(status.st_mode):
                tick()
                remaining += _list_entries(entry)
    return total


def _read_bytes(path: Path) -> int:
    try:
        return getattr(path.lstat(), "st_blocks", 0) * 512
    except OSError:
        return 0


def _list_entries(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []


def _iterate_items(root: Path, in_use: Optional[InUse]) -> Iterator[Item]:
    live = {step.path.parent for step in list_steps(root) if _is_live(step)}
    for path in sorted(root.glob("jobs/*")):
        if path not in live and (in_use is None or path != in_use.job):
            yield Item(path, _read_last_poll(path), 0)
    if in_use is None and (live or lock.is_held(get_host_lock(root))):
        return
    needed = () if in_use is None else in_use.items
    for kind in RENEWABLE:
        for path in sorted(root.glob(f"{kind}/*")):
            if path not in needed and not _is_running_agent(path):
                yield Item(path, _read_last_use(path), 0)
    for path in sorted(root.glob("repositories/*")):
        if path not in needed:
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
