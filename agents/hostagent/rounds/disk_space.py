"""The disk of a round: old files are removed before its builds, and the limit is kept.

This is no part of the command `prepare`. A large work directory takes minutes on a slow disk, and a
call of the orchestrator must not.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Optional

from ..builds.build_steps import Heartbeat
from ..builds.repositories import forget_worktrees
from ..errors import Aborted
from ..files import count_lacking_bytes, describe_full_disk
from ..old_files import InUse, Sizes, remove_old_items
from ..paths import DATA, StepDir, build_dir, get_repository, install_dir, read_install_name
from ..step.journal import Journal
from ..step.plan import Plan

#: Old files are searched at most this often, unless something is built.
EVERY_S = 600.0
STAMP = "pruned"
#: A search that takes longer ends; the sizes so far are recorded for the next round.
LIMIT_S = 120.0
#: A search that takes longer is reported.
NOTICE_S = 1.0
_GIB = 2**30


class _TimeUp(Exception):
    pass


class DiskSpace:
    """The work directory of a round: call `make_room` before each build, `add` after it."""

    def __init__(self, step: StepDir, plan: Plan, journal: Journal, heartbeat: Heartbeat) -> None:
        self._root = step.root
        self._plan = plan
        self._job = step.path.parent
        self._journal = journal
        self._heartbeat = heartbeat
        self._sizes = Sizes(step.root, self._tick)
        self._is_searched = False
        self._used: Optional[int] = None
        self._deadline = self._notice_at = 0.0

    def remove_old_files(self) -> None:
        """Remove old files if the last search is long ago."""
        stamp = self._root / STAMP
        if not stamp.exists() or abs(time.time() - stamp.stat().st_mtime) > EVERY_S:
            self._search()

    def make_room(self) -> None:
        """Remove files that are not in use until the disk has room for a build.

        Aborted if it has none, or if the files of this round alone exceed the limit.
        """
        if not self._is_searched or self._is_over_limit():
            self._search()
        if self._used is not None and (lacking := count_lacking_bytes(self._root)):
            self._search(self._used - lacking)
        if full := describe_full_disk(self._root):
            raise Aborted("disk_full", f"{full}; free some space there")
        if self._used is not None and self._is_over_limit():
            raise Aborted("disk_limit", self._describe_excess(self._used))

    def add(self, tree: str) -> None:
        """Count a new build and its install."""
        folders = [build_dir(self._root, tree)]
        if name := read_install_name(self._root, tree):
            folders.append(install_dir(self._root, name))
        self._begin()
        try:
            growth = sum(map(self._sizes.renew, folders))
            self._used = None if self._used is None else self._used + growth
        except _TimeUp:
            self._used = None
        self._sizes.save()

    def _search(self, limit_bytes: Optional[int] = None) -> None:
        """Remove old files, and more down to the limit, which is by default that of the plan."""
        disk = self._plan.disk
        limit = disk.limit_bytes if limit_bytes is None else min(limit_bytes, disk.limit_bytes)
        in_use = InUse(self._job, list_needed_items(self._root, self._plan))
        self._is_searched = True
        self._begin()
        try:
            removed, self._used = remove_old_items(
                self._root, disk.keep_days, limit, in_use=in_use, sizes=self._sizes
            )
            if removed:
                forget_worktrees(self._root)
        except _TimeUp:
            self._used = None
            self._sizes.save()
        (self._root / STAMP).touch()

    def _begin(self) -> None:
        now = time.monotonic()
        self._deadline, self._notice_at = now + LIMIT_S, now + NOTICE_S

    def _tick(self) -> None:
        self._heartbeat()
        now = time.monotonic()
        if now > self._deadline:
            raise _TimeUp
        if now > self._notice_at:
            self._notice_at = self._deadline
            self._journal.append("phase", trial=None, phase="looking for old files", quiet_s=0.0)

    def _is_over_limit(self) -> bool:
        return self._used is not None and self._used > self._plan.disk.limit_bytes

    def _describe_excess(self, used: int) -> str:
        return (
            f"{self._root} has {used / _GIB:.1f} GiB of files that this job needs or that are new, "
            f"and the disk limit of the host is {self._plan.disk.limit_bytes / _GIB:.1f} GiB; "
            "raise the limit in the host's settings, or measure fewer commits in one run"
        )


def list_needed_items(root: Path, plan: Plan) -> frozenset[Path]:
    """Return the files and folders below the work directory that a round needs."""
    names = {trial.tool.path for trial in plan.trials if not os.path.isabs(trial.tool.path)}
    needed = set(root.glob(f"{DATA}/*"))
    for build in plan.builds:
        needed.add(build_dir(root, build.tree))
        if name := read_install_name(root, build.tree):
            needed.add(install_dir(root, name))
        for source in (build.source, *build.repositories.values()):
            names |= {name for name in (source.archive, source.lfs_files) if name}
            names |= {submodule.archive for submodule in source.submodules}
            if source.repository is not None:
                needed.add(get_repository(root, source.repository))
    # A tool is a file in the folder of its hash, which is removed as a whole.
    return frozenset(needed | {root.joinpath(*Path(name).parts[:2]) for name in names})
