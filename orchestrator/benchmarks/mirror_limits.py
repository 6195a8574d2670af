"""Disk limits of mirrors: of each one, of a team's together, and the free space for all."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cli.pitwall.units import format_bytes
from orchestrator.accounts.quotas import QuotaExceededError
from orchestrator.benchmarks.mirrors import measure_folder, parse_mirror_project, strip_clone_suffix
from orchestrator.core.errors import InvalidRequestError, NotReadyError


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamMirrors:
    """The mirrors in `root` of a team's projects; their quota in bytes (None: without limit)."""

    team: str
    root: Path
    projects: frozenset[int]
    most_bytes: int | None

    def check(self, *, without: str = "", more_bytes: int = 0) -> None:
        """Raise QuotaExceededError if they use the whole quota, not counting `without`.

        `more_bytes`: what is about to be written.
        """
        if self.most_bytes is None:
            return
        folders = (
            each
            for each in self.root.iterdir()
            if parse_mirror_project(strip_clone_suffix(each.name)) in self.projects
            and each.name != without
        )
        used = sum(map(measure_folder, folders)) + more_bytes
        if used >= self.most_bytes:
            raise QuotaExceededError(
                f"the mirrors of the repositories of {self.team} take {format_bytes(used)}, and "
                f"the team's quota is {format_bytes(self.most_bytes)}; remove large files from "
                "the history of a repository and choose Clone again on the page of its project, or "
                "ask your administrator for a larger quota (mirrors_mib) and fetch again"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorLimits:
    """The checks before and while git writes to a folder: a mirror, or a clone that becomes one.

    `replaces`: the name of the mirror that a clone replaces; it does not count for the quota.
    """

    folder: Path
    replaces: str = ""
    mirror_bytes: int
    free_bytes: int
    team: TeamMirrors | None

    def check(self, *, more_bytes: int = 0) -> None:
        """Raise InvalidRequestError, QuotaExceededError or NotReadyError for an exceeded limit.

        The limit of this mirror comes first: its message is the most specific. `more_bytes`: what
        is about to be written.
        """
        check_size(self.folder, self.mirror_bytes, more_bytes=more_bytes)
        if self.team is not None:
            self.team.check(without=self.replaces, more_bytes=more_bytes)
        check_free(self.folder.parent, self.free_bytes + more_bytes)

    def repeated_check(self) -> Callable[[], None]:
        """Return `check` for `run_bounded`, which uses at most a tenth of the time."""
        next_check = 0.0

        def check() -> None:
            nonlocal next_check
            start = time.monotonic()
            if start >= next_check:
                self.check()
                next_check = time.monotonic() + 10 * (time.monotonic() - start)

        return check


def check_size(mirror: Path, most_bytes: int, *, more_bytes: int = 0) -> None:
    """Raise InvalidRequestError if the mirror, with `more_bytes`, is larger than `most_bytes`."""
    if measure_folder(mirror) + more_bytes > most_bytes:
        raise InvalidRequestError(
            f"the repository needs more than {most_bytes >> 20} MiB on the server; remove large "
            "files from its history and choose Clone again on the project's page, or ask your "
            "administrator to raise PITWALL_GIT_MIRROR_LIMIT_MIB"
        )


def check_free(folder: Path, least_bytes: int) -> None:
    """Raise NotReadyError if the disk of this folder has less free space than `least_bytes`."""
    free = shutil.disk_usage(folder).free
    if free < least_bytes:
        raise NotReadyError(
            f"the disk of Pitwall's data folder has {format_bytes(free)} free, and "
            f"{format_bytes(least_bytes)} must stay free; ask your administrator to free "
            "space, to add a larger disk, or to lower PITWALL_MIN_FREE_DISK_MIB; then try again"
        )
