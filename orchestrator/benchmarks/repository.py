"""git repositories: a bare mirror in the data folder, which is a cache and may be lost."""

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from orchestrator.benchmarks.archiving import PACK_TIMEOUT_S, write_archive
from orchestrator.benchmarks.commit_facts import COMMIT_FIELDS, CommitFacts, parse_commit
from orchestrator.benchmarks.fetch_calls import fetch_refs
from orchestrator.benchmarks.git_calls import GitOutput, call_git, is_repository
from orchestrator.benchmarks.lfs_files import LfsFiles
from orchestrator.benchmarks.mirror_limits import MirrorLimits, TeamMirrors, check_free
from orchestrator.benchmarks.mirrors import (
    build_clone_path,
    lock_mirror,
    remove_clones,
    remove_leftovers,
    replace_mirror,
)
from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.benchmarks.submodules import Submodules
from orchestrator.benchmarks.tree_entries import CommitContents, inspect_commit
from orchestrator.core.errors import InvalidRequestError

_ALL_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
_REF = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._/+@~^-]{0,199}$")
#: Limit of a list of hashes that is not kept in memory: 26 million hashes.
MOST_LISTED_BYTES = 1 << 30
#: Time limit of all submodules of a commit, and of its files of Git LFS: requests for the project
#: wait for them.
SUBMODULES_TIMEOUT_S = 900.0
#: Time limit of repacking a mirror, and the least time between two.
GC_TIMEOUT_S = 1800.0
GC_PAUSE_S = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The disk space that one repository may use.

    `packed_bytes`: the unpacked files of a commit, or a bundle. `free_bytes`: what must stay free
    on the disk.
    """

    fetch_timeout_s: float = 3600.0
    mirror_bytes: int = 20 << 30
    packed_bytes: int = 8 << 30
    free_bytes: int = 0


class Repository:
    """Reads one repository through its mirror; every git call is an argument list with limits.

    `team_mirrors` is called for each fetch, and returns the mirrors that share a quota with this
    one.
    """

    def __init__(
        self,
        remote: Remote,
        mirror: Path,
        *,
        limits: Limits | None = None,
        team_mirrors: Callable[[], TeamMirrors] | None = None,
    ) -> None:
        self._remote = remote
        self._mirror = mirror
        self._limits = limits or Limits()
        self._team_mirrors = team_mirrors

    def fetch(
        self,
        *refs: str,
        branches: bool = True,
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        """Update branches, tags and `refs` (such as `refs/pull/5/head`) of the mirror.

        Without `branches`, only `refs` are updated if there is a mirror. The first fetch is a clone
        that becomes the mirror at its end, so an existing mirror is complete. `on_progress` gets
        git's progress, a line at most once a second. Raise InvalidRequestError with git's message
        on failure.
        """
        for ref in refs:
            if not _REF.match(ref):
                raise InvalidRequestError(f"{ref!r} is not the name of a ref")
        with lock_mirror(self._mirror):
            # A killed fetch may have left incomplete packs and a clone.
            remove_clones(self._mirror)
            remove_leftovers(self._mirror)
            if not is_repository(self._mirror):
                self._clone(on_progress)
            elif branches:
                self._update(*_ALL_REFS, prune=True, on_progress=on_progress)
            if refs:
                kept = (f"+{ref}:refs/pitwall/{ref.removeprefix('refs/')}" for ref in refs)
                self._update(*kept, on_progress=on_progress)

    def clone(self, *, on_progress: Callable[[str], None] | None = None) -> None:
        """Replace the mirror by a new clone; the old mirror does not count for the limits.

        The new mirror lacks everything that no branch or tag reaches. If the clone fails, the
        mirror stays, with the same errors as `fetch`.
        """
        with lock_mirror(self._mirror):
            remove_clones(self._mirror)
            self._clone(on_progress)

    def collect_garbage(self) -> None:
        """Repack the mirror if git considers it due, at most a few times a day.

        This is separate from a fetch: it temporarily needs as much space as the mirror again,
        beyond the limit of a mirror.
        """
        if not is_repository(self._mirror):
            return
        with lock_mirror(self._mirror, wait_s=0.0):
            last = self._mirror / "pitwall-gc"
            if last.exists() and time.time() - last.stat().st_mtime < GC_PAUSE_S:
                return
            last.touch()
            try:
                # The mirror is locked here, so a lock of gc in it belongs to a killed process.
                call_git(
                    "--git-dir", str(self._mirror), "gc", "--auto", "--force", "--quiet",
                    config={"gc.autoDetach": "false"}, timeout_s=GC_TIMEOUT_S,
                    file_bytes=self._limits.mirror_bytes + (1 << 30),
                    size_check=self._check_free,
                )  # fmt: skip
            except BaseException:
                remove_leftovers(self._mirror)
                raise

    def resolve(self, ref: str) -> str:
        """Return the full hash of a branch, tag or (abbreviated) commit of the current mirror.

        It never fetches. Raise InvalidRequestError for a name that the last fetch did not bring.
        """
        sha = self.find(ref)
        if sha is None:
            raise InvalidRequestError(
                f"there is no commit, branch or tag {ref} in the repository; check the spelling, "
                "and that it was pushed"
            )
        return sha

    def find(self, ref: str) -> str | None:
        """Like `resolve`, but return None for a name that the mirror does not know."""
        if not _REF.match(ref):
            raise InvalidRequestError(f"{ref!r} is not the name of a commit, branch or tag")
        output = self._lookup(ref)
        return None if output is None else output.strip()

    def describe(self, sha: str) -> CommitFacts:
        return parse_commit(
            self._git("show", "--no-patch", f"--format={COMMIT_FIELDS}", sha).strip("\n")
        )

    def history(self, ref: str, *, limit: int) -> list[CommitFacts]:
        """Return at most `limit` newest commits of `ref` in topological order, parents first."""
        return self._log(ref, limit=limit)

    def count(self, ref: str, *, without: str = "") -> int:
        """Return the number of commits that are reachable from `ref`, but not from `without`."""
        return int(self._git("rev-list", "--count", *_build_range(ref, without), "--"))

    def is_empty(self) -> bool:
        """Return whether the mirror is missing, or its first fetch is incomplete."""
        return not self._try("for-each-ref", "--count=1")

    def tips(self) -> list[tuple[str, str]]:
        """Return all branches with their tips, newest first; none before the first fetch."""
        if not is_repository(self._mirror):
            return []
        listed = self._git(
            "for-each-ref", "--sort=-committerdate", "--format=%(objectname) %(refname:short)",
            "refs/heads",
        )  # fmt: skip
        rows = (line.partition(" ") for line in listed.split("\n") if line)
        return [(name, sha) for sha, _, name in rows]

    def branches(self) -> list[str]:
        return sorted(name for name, _ in self.tips())

    def tags(self) -> list[str]:
        """Return the names of tags, newest first."""
        listed = self._git(
            "for-each-ref", "--sort=-creatordate", "--format=%(refname:short)", "refs/tags"
        )
        return listed.split()

    def list_tag_tips(self) -> list[tuple[str, str]]:
        """Return all tags of commits with the hashes of these, newest first."""
        if not is_repository(self._mirror):
            return []
        listed = self._git(
            "for-each-ref", "--sort=-creatordate",
            "--format=%(if)%(*objectname)%(then)%(*objectname) %(*objecttype)"
            "%(else)%(objectname) %(objecttype)%(end) %(refname:lstrip=2)",
            "refs/tags",
        )  # fmt: skip
        rows = (line.split(" ", 2) for line in listed.split("\n") if line)
        return [(name, sha) for sha, kind, name in rows if kind == "commit"]

    def tagged(self) -> set[str] | None:
        """Return the hashes of tagged objects as of the last fetch; None without a mirror."""
        listed = self._try("for-each-ref", "--format=%(objectname) %(*objectname)", "refs/tags")
        return None if listed is None else set(listed.split())

    def select_fetched(self, shas: Collection[str]) -> set[str]:
        """Return those of the hashes that branches and tags reach; empty before the first fetch."""
        return self._select(shas, "--all") if is_repository(self._mirror) else set()

    def select_known(self, shas: Collection[str]) -> set[str]:
        """Return those of a few hashes that the mirror has, even if no branch or tag reaches them.

        Empty before the first fetch.
        """
        if not shas or not is_repository(self._mirror):
            return set()
        return self._select(shas, "--no-walk", "--ignore-missing", "--end-of-options", *shas)

    def is_published(self, sha: str) -> bool:
        """Return whether a branch or tag contains the commit, not only a pull request."""
        return bool(
            self._try("for-each-ref", "--count=1", f"--contains={sha}", "refs/heads", "refs/tags")
        )

    def select_reachable(self, shas: Collection[str], ref: str, *, without: str = "") -> set[str]:
        """Return those of the hashes that are reachable from `ref`, but not from `without`."""
        return self._select(shas, *_build_range(ref, without))

    def select_first_parents(self, shas: Collection[str], ref: str) -> set[str]:
        """Return those of the hashes that are on the line of first parents of `ref`."""
        return self._select(shas, "--first-parent", ref)

    def has(self, sha: str) -> bool:
        return self._lookup(sha) is not None

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the newest common commit; None if there is none."""
        output = self._try("merge-base", "--end-of-options", one, other)
        return output.split()[0] if output else None

    def only_in(self, ref: str, other: str) -> list[str]:
        """Return the commits that `ref` contains and `other` does not."""
        return self._git("rev-list", ref, f"^{other}", "--").split()

    def new_since(self, ref: str, other: str, *, limit: int) -> list[CommitFacts]:
        """Like `history`, without the commits of `other`."""
        return self._log(ref, f"^{other}", limit=limit)

    def first_parents(self, ref: str) -> list[str]:
        """Return the line of first parents of `ref`, newest first."""
        return self._git("rev-list", "--first-parent", ref, "--").split()

    def files(self, sha: str, *paths: str) -> dict[str, int]:
        """Return the plain files of a commit at or below these paths, with their sizes in bytes."""
        return _parse_tree(self._git("ls-tree", "-r", "-l", "-z", self.resolve(sha), "--", *paths))

    def list_files(self, sha: str, *paths: str) -> dict[str, int]:
        """Like `files`, but only the files at exactly these paths; at least one path."""
        if not paths:
            return {}
        return _parse_tree(self._git("ls-tree", "-l", "-z", self.resolve(sha), "--", *paths))

    def read(self, sha: str, path: str) -> bytes:
        """Return the contents of a file from `files`."""
        return self._run("cat-file", "blob", f"{sha}:{path}").stdout

    def archive(self, sha: str, target: BinaryIO) -> None:
        """Write the commit's files as a .tar.gz, with the same bytes each time."""
        write_archive(
            self._mirror, sha, target, most_bytes=self._limits.packed_bytes, check=self._check_free
        )

    def ancestors(self, sha: str, *, limit: int) -> list[str]:
        """Return at most `limit` commits before this one, nearest first."""
        listed = self._git("rev-list", f"--max-count={limit + 1}", sha, "--")
        return [each for each in listed.split() if each != sha]

    def bundle(self, sha: str, target: BinaryIO, *, without: str | None = None) -> None:
        """Write the commit and its history as a git bundle with the ref `refs/pitwall/<sha>`.

        It leaves out the history of `without`, a commit that the receiver has.
        """
        ref = f"refs/pitwall/{sha}"
        self._git("update-ref", ref, sha)
        excluded = [f"^{without}"] if without else []
        call_git(
            "--git-dir", str(self._mirror), "bundle", "create", "--quiet", "-", ref, *excluded,
            target=target, timeout_s=PACK_TIMEOUT_S, most_bytes=self._limits.packed_bytes,
            limit="PITWALL_GIT_PACKED_LIMIT_MIB", size_check=self._check_free,
        )  # fmt: skip

    def inspect(self, sha: str) -> CommitContents:
        """Return what a commit only refers to; errors as for `inspect_commit`."""
        return inspect_commit(self._mirror, sha)

    @property
    def submodules(self) -> Submodules:
        return Submodules(
            remote=self._remote,
            mirror=self._mirror,
            limits=self._limit_call(self._mirror),
            timeout_s=min(self._limits.fetch_timeout_s, SUBMODULES_TIMEOUT_S),
            packed_bytes=self._limits.packed_bytes,
        )

    @property
    def lfs(self) -> LfsFiles:
        return LfsFiles(self.submodules)

    def _select(self, shas: Collection[str], *revisions: str) -> set[str]:
        """Filter a list that may have millions of hashes, without keeping it in memory."""
        selection = _Selection(shas)
        call_git(
            "--git-dir", str(self._mirror), "rev-list", *revisions, "--",
            target=selection, most_bytes=MOST_LISTED_BYTES,
        )  # fmt: skip
        return selection.shas

    def _check_free(self) -> None:
        check_free(self._mirror.parent, self._limits.free_bytes)

    def _lookup(self, ref: str) -> str | None:
        return self._try(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
        )

    def _try(self, *args: str) -> str | None:
        if not is_repository(self._mirror):
            return None
        done = self._run(*args, check=False)
        return done.stdout.decode(errors="replace") if done.returncode == 0 else None

    def _git(self, *args: str) -> str:
        return self._run(*args).stdout.decode(errors="replace")

    def _log(self, *revisions: str, limit: int) -> list[CommitFacts]:
        """Return commits, parents first."""
        # Subjects and names may contain any character except NUL.
        log = self._git(
            "log", "-z", "--topo-order", f"--max-count={limit}", f"--format={COMMIT_FIELDS}",
            *revisions, "--",
        )  # fmt: skip
        return [parse_commit(line) for line in reversed(log.split("\0")) if line]

    def _clone(self, on_progress: Callable[[str], None] | None) -> None:
        clone = build_clone_path(self._mirror)
        try:
            limits = self._limit_call(clone, replaces=self._mirror.name)
            limits.check()
            call_git("init", "--quiet", "--bare", "--template=", str(clone))
            self._fetch(clone, _ALL_REFS, limits, on_progress)
            replace_mirror(self._mirror)
        finally:
            remove_clones(self._mirror)

    def _update(
        self, *refs: str, prune: bool = False, on_progress: Callable[[str], None] | None
    ) -> None:
        limits = self._limit_call(self._mirror)
        limits.check()
        try:
            self._fetch(self._mirror, refs, limits, on_progress, *(("--prune",) if prune else ()))
        except BaseException:
            remove_leftovers(self._mirror)
            raise

    def _limit_call(self, folder: Path, *, replaces: str = "") -> MirrorLimits:
        return MirrorLimits(
            folder=folder,
            replaces=replaces,
            mirror_bytes=self._limits.mirror_bytes,
            free_bytes=self._limits.free_bytes,
            team=self._team_mirrors() if self._team_mirrors else None,
        )

    def _fetch(
        self,
        folder: Path,
        refs: Sequence[str],
        limits: MirrorLimits,
        on_progress: Callable[[str], None] | None,
        *options: str,
    ) -> None:
        fetch_refs(
            self._remote, folder, refs, *options,
            limits=limits, timeout_s=self._limits.fetch_timeout_s, on_progress=on_progress,
        )  # fmt: skip

    def _run(self, *args: str, check: bool = True) -> GitOutput:
        return call_git("--git-dir", str(self._mirror), *args, check=check)


class _Selection:
    """Reads a list of hashes, one per line, and keeps the wanted ones."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = {sha.encode() for sha in wanted}
        self._rest = b""
        self.shas: set[str] = set()

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.shas.update(sha.decode() for sha in self._wanted.intersection(lines))


def _build_range(ref: str, without: str) -> tuple[str, ...]:
    return (ref, f"^{without}") if without else (ref,)


def _parse_tree(listed: str) -> dict[str, int]:
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    return {
        path: int(facts.split()[3])
        for facts, _, path in entries
        if facts.startswith("100")  # No link, no submodule, no folder.
    }
