"""The submodules of the commits of a project, in one bare repository inside its mirror.

So they count for the limits of the mirror, and a new clone of the mirror fetches them again. Each
commit is fetched by its hash, without its history.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from orchestrator.benchmarks.archiving import write_archive
from orchestrator.benchmarks.fetch_calls import fetch_refs
from orchestrator.benchmarks.git_access import Access
from orchestrator.benchmarks.git_calls import call_git, is_repository
from orchestrator.benchmarks.mirror_limits import MirrorLimits, check_free
from orchestrator.benchmarks.mirrors import lock_mirror, remove_leftovers
from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.benchmarks.submodule_urls import may_send_credential, resolve_submodule_url
from orchestrator.benchmarks.tree_entries import Submodule, inspect_commit
from orchestrator.core.errors import InvalidRequestError, PitwallError

#: The most submodules of a commit, and the most levels of them.
MOST_SUBMODULES = 100
MOST_LEVELS = 5
_FOLDER = "pitwall-submodules"
#: The message of a server that sends only the tips of branches and tags.
_NOT_BY_HASH = ("unadvertised object", "not our ref", "dumb http transport does not support")
_TIPS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


class SubmoduleTree(NamedTuple):
    """A folder of a commit, such as `vendor/lib`, and the commit that it contains."""

    path: str
    sha: str


class FetchedSubmodule(NamedTuple):
    """A submodule that was fetched from `remote`."""

    tree: SubmoduleTree
    remote: Remote


@dataclass(frozen=True, slots=True, kw_only=True)
class Submodules:
    """Fetches and reads the submodules of the commits in `mirror`.

    `packed_bytes` limits the unpacked files of one submodule, and `timeout_s` the time for all
    submodules of a commit.
    """

    remote: Remote
    mirror: Path
    limits: MirrorLimits
    timeout_s: float
    packed_bytes: int

    @property
    def folder(self) -> Path:
        return self.mirror / _FOLDER

    def fetch(
        self, sha: str, *, on_progress: Callable[[str], None] | None = None
    ) -> list[FetchedSubmodule]:
        """Fetch all submodules of a commit and theirs; return them, parents first.

        Raise InvalidRequestError that names the submodule if one cannot be fetched or measured.
        """
        with lock_mirror(self.mirror):
            if is_repository(self.folder):
                remove_leftovers(self.folder)
            else:
                call_git("init", "--quiet", "--bare", "--template=", str(self.folder))
            deadline = time.monotonic() + self.timeout_s
            return list(self._walk(sha, deadline, on_progress))

    def has_all(self, trees: Sequence[SubmoduleTree]) -> bool:
        """Return whether all of these were fetched, and the mirror was not lost since then."""
        return is_repository(self.folder) and all(self._has(tree.sha) for tree in trees)

    def archive(self, sha: str, target: BinaryIO) -> None:
        """Write the files of a submodule as a .tar.gz, with the same bytes each time."""
        check = partial(check_free, self.mirror.parent, self.limits.free_bytes)
        write_archive(self.folder, sha, target, most_bytes=self.packed_bytes, check=check)

    def _walk(
        self, sha: str, deadline: float, on_progress: Callable[[str], None] | None
    ) -> Iterator[FetchedSubmodule]:
        top = inspect_commit(self.mirror, sha).submodules
        # Submodules that are left, each with the path and URL of the repository around it.
        left = [(each, "", self.remote.url, 1) for each in reversed(top)]
        count = 0
        while left:
            submodule, around, parent, level = left.pop()
            count += 1
            path = f"{around}{submodule.path}"
            self._check_bounds(path, count, level)
            try:
                remote = self._fetch_one(submodule, parent, deadline, on_progress)
                inner = inspect_commit(self.folder, submodule.sha).submodules
            except PitwallError as error:
                raise InvalidRequestError(
                    f"the submodule {path} cannot be used: {error}"
                ) from error
            left += [(each, f"{path}/", remote.url, level + 1) for each in reversed(inner)]
            yield FetchedSubmodule(SubmoduleTree(path, submodule.sha), remote)

    def _check_bounds(self, path: str, count: int, level: int) -> None:
        if count > MOST_SUBMODULES:
            raise InvalidRequestError(
                f"the commit has more than {MOST_SUBMODULES} submodules, counting those of "
                "submodules; remove some of them"
            )
        if level > MOST_LEVELS:
            raise InvalidRequestError(
                f"the submodule {path} cannot be used: it is inside {MOST_LEVELS} other "
                "submodules, and no more levels are fetched"
            )

    def _fetch_one(
        self,
        submodule: Submodule,
        parent: str,
        deadline: float,
        on_progress: Callable[[str], None] | None,
    ) -> Remote:
        """Fetch a submodule unless it is there; return its remote, which is checked in any case."""
        url = resolve_submodule_url(parent, submodule.url, allow_local=self.remote.allow_local)
        remote = self._build_remote(url)
        if self._has(submodule.sha):
            return remote
        fetch = partial(self._call_fetch, remote, deadline, on_progress)
        ref = f"refs/pitwall/{submodule.sha}"
        try:
            fetch([f"+{submodule.sha}:{ref}"], "--no-tags", "--depth=1")
        except InvalidRequestError as error:
            if not any(text in str(error) for text in _NOT_BY_HASH):
                raise
            fetch(_TIPS)
        if not self._is_commit(submodule.sha):
            raise InvalidRequestError(
                f"its repository has no commit {submodule.sha[:10]} that a branch or tag reaches; "
                "push it there"
            )
        call_git("--git-dir", str(self.folder), "update-ref", ref, submodule.sha)
        return remote

    def _call_fetch(
        self,
        remote: Remote,
        deadline: float,
        on_progress: Callable[[str], None] | None,
        refs: Sequence[str],
        *options: str,
    ) -> None:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise InvalidRequestError(
                f"the submodules of the commit were not fetched within {self.timeout_s:g} s"
            )
        self.limits.check()
        try:
            fetch_refs(
                remote, self.folder, refs, *options,
                limits=self.limits, timeout_s=left_s, on_progress=on_progress,
            )  # fmt: skip
        except BaseException:
            remove_leftovers(self.folder)
            raise

    def _build_remote(self, url: str) -> Remote:
        """Return the remote of a submodule, with the project's credential if it may have it."""
        project = self.remote.url
        if may_send_credential(project, url):
            return replace(self.remote, url=url)
        if not url.startswith(("http", "/")):
            raise InvalidRequestError(
                "its URL uses SSH, and the deploy key of the project is used only for "
                "repositories of its server in its own folder; use an https URL in .gitmodules"
            )
        return replace(self.remote, url=url, access=Access)

    def _has(self, sha: str) -> bool:
        return self._is_commit(f"refs/pitwall/{sha}")

    def _is_commit(self, name: str) -> bool:
        words = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return call_git("--git-dir", str(self.folder), *words, check=False).returncode == 0
