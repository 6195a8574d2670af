"""git repositories: a bare mirror below the data folder, which is a cache and may be lost."""

import fcntl
import gzip
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from orchestrator.benchmarks.bounded import Completed, TooMuchError, run_bounded
from orchestrator.benchmarks.remotes import SSH, way_to
from orchestrator.core.errors import InvalidRequestError

_REMOTE = re.compile(
    r"^(https?|ssh)://[^\s\x00-\x1f-][^\s\x00-\x1f]*$|^\w[\w.-]*@[\w.-]+:[\w./~-]+$"
)
_REF = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._/+@~^-]{0,199}$")
_USER_INFO = re.compile(r"://[^/\s]*@")
_FIELDS = "%H%x1f%P%x1f%cI%x1f%an%x1f%s"
GIT_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    sha: str
    parents: tuple[str, ...]
    committed_at: datetime
    author: str
    subject: str


def check_url(url: str, *, allow_local: bool) -> None:
    """InvalidRequestError unless `url` is an https, http or ssh one, or a path where allowed."""
    # A host that begins with a dash would be an option of ssh.
    if (_REMOTE.match(url) and "@-" not in url) or (allow_local and url.startswith("/")):
        return
    raise InvalidRequestError(
        f"expected a repository address such as https://… or git@host:path, got {url!r}",
        field="repository_url",
    )


class Repository:
    """Reads one repository through its mirror; every git call is an argument list with limits.

    `allowed`: networks of our own that the server may be in (see `remotes.way_to`).
    """

    def __init__(
        self, url: str, mirror: Path, *, allow_local: bool, allowed: Sequence[str] = ()
    ) -> None:
        check_url(url, allow_local=allow_local)
        self._url = url
        self._mirror = mirror
        self._allowed_networks = tuple(allowed)
        self._allowed = "https:http:ssh" + (":file" if allow_local else "")

    def fetch(self) -> None:
        """Brings the mirror up to date; InvalidRequestError with git's own words if it cannot."""
        with self._locked():
            if not (self._mirror / "HEAD").exists():
                self._call("init", "--quiet", "--bare", str(self._mirror))
            self._fetch("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", prune=True)

    def fetch_also(self, ref: str) -> None:
        """As `fetch`, and what is on no branch, such as `refs/pull/5/head`."""
        if not _REF.match(ref):
            raise InvalidRequestError(f"{ref!r} is not the name of a ref")
        self.fetch()
        with self._locked():
            kept = f"+{ref}:refs/pitwall/{ref.removeprefix('refs/')}"
            self._fetch(kept)

    def resolve(self, ref: str) -> str:
        """The full hash of a branch, tag or (abbreviated) commit of the mirror as it is.

        It never fetches. InvalidRequestError for a name that the last fetch did not bring.
        """
        if not _REF.match(ref):
            raise InvalidRequestError(f"{ref!r} is not the name of a commit, branch or tag")
        found = self._lookup(ref)
        if found is None:
            raise InvalidRequestError(
                f"there is no commit, branch or tag {ref} in the repository; check the spelling, "
                "and that it was pushed"
            )
        return found.strip()

    def describe(self, sha: str) -> CommitFacts:
        return _commit(self._git("show", "--no-patch", f"--format={_FIELDS}", sha).strip("\n"))

    def history(self, ref: str, *, limit: int) -> list[CommitFacts]:
        """At most `limit` newest commits of `ref` in topological order, parents first."""
        log = self._git(
            "log", "--topo-order", f"--max-count={limit}", f"--format={_FIELDS}", ref, "--"
        )
        return [_commit(line) for line in reversed(log.splitlines())]

    def count(self, ref: str) -> int:
        """The number of commits that `ref` can reach."""
        return int(self._git("rev-list", "--count", ref, "--"))

    def tips(self) -> list[tuple[str, str]]:
        """All branches with the hash of their newest commit, the newest of all first."""
        listed = self._git(
            "for-each-ref", "--sort=-committerdate", "--format=%(objectname) %(refname:short)",
            "refs/heads",
        )  # fmt: skip
        rows = (line.partition(" ") for line in listed.splitlines())
        return [(name, sha) for sha, _, name in rows]

    def branches(self) -> list[str]:
        return sorted(name for name, _ in self.tips())

    def tags(self) -> list[str]:
        """The names of tags, the newest first."""
        listed = self._git(
            "for-each-ref", "--sort=-creatordate", "--format=%(refname:short)", "refs/tags"
        )
        return listed.split()

    def tagged(self) -> set[str]:
        """The hashes of what tags name, as far as the last fetch saw; empty before the first."""
        listed = self._try("for-each-ref", "--format=%(objectname) %(*objectname)", "refs/tags")
        return set((listed or "").split())

    def commits(self) -> set[str]:
        """The hashes of all commits that branches and tags reach; empty before the first fetch."""
        return set((self._try("rev-list", "--all") or "").split())

    def has(self, sha: str) -> bool:
        return self._lookup(sha) is not None

    def merge_base(self, one: str, other: str) -> str | None:
        """The newest commit that both contain; None where they have nothing in common."""
        found = self._try("merge-base", "--end-of-options", one, other)
        return found.split()[0] if found else None

    def only_in(self, ref: str, other: str) -> list[str]:
        """The commits that `ref` contains and `other` does not."""
        return self._git("rev-list", ref, f"^{other}", "--").split()

    def new_since(self, ref: str, other: str, *, limit: int) -> list[CommitFacts]:
        """As `history`, without what `other` contains."""
        log = self._git(
            "log", "--topo-order", f"--max-count={limit}", f"--format={_FIELDS}", ref,
            f"^{other}", "--",
        )  # fmt: skip
        return [_commit(line) for line in reversed(log.splitlines())]

    def contained(self, ref: str) -> list[str]:
        """All commits that `ref` contains, newest first."""
        return self._git("rev-list", ref, "--").split()

    def first_parents(self, ref: str) -> list[str]:
        """The line of first parents of `ref`, newest first."""
        return self._git("rev-list", "--first-parent", ref, "--").split()

    def files(self, sha: str, *paths: str) -> dict[str, int]:
        """The plain files of a commit at or below these paths, and their sizes in bytes."""
        listed = self._git("ls-tree", "-r", "-l", "-z", self.resolve(sha), "--", *paths)
        entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
        return {
            path: int(facts.split()[3])
            for facts, _, path in entries
            if facts.startswith("100")  # No link, no submodule.
        }

    def read(self, sha: str, path: str) -> bytes:
        """The contents of a file that `files` told of."""
        return self._run("cat-file", "blob", f"{sha}:{path}").stdout

    def archive(self, sha: str) -> bytes:
        """The commit's files as a .tar.gz, the same bytes each time."""
        tar = self._run("archive", "--format=tar", sha).stdout
        return gzip.compress(tar, mtime=0)

    def ancestors(self, sha: str, *, limit: int) -> list[str]:
        """The commits before this one, nearest first, at most `limit`."""
        listed = self._git("rev-list", f"--max-count={limit + 1}", sha, "--")
        return [each for each in listed.split() if each != sha]

    def bundle(self, sha: str, *, without: str | None = None) -> bytes:
        """The commit and its history as a git bundle with the ref `refs/pitwall/<sha>`.

        The history of `without`, a commit that the receiver has, is left out.
        """
        ref = f"refs/pitwall/{sha}"
        self._git("update-ref", ref, sha)
        left_out = [f"^{without}"] if without else []
        return self._run("bundle", "create", "--quiet", "-", ref, *left_out).stdout

    def _lookup(self, ref: str) -> str | None:
        return self._try(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
        )

    def _try(self, *args: str) -> str | None:
        if not (self._mirror / "HEAD").exists():
            return None
        done = self._run(*args, check=False)
        return done.stdout.decode(errors="replace") if done.returncode == 0 else None

    def _git(self, *args: str) -> str:
        return self._run(*args).stdout.decode(errors="replace")

    def _fetch(self, *refs: str, prune: bool = False) -> None:
        way = way_to(self._url, self._allowed_networks)
        # As one pack: loose objects would be written one by one.
        options = ("--git-dir", str(self._mirror), "-c", "fetch.unpackLimit=1", *way.options)
        words = ("--quiet", "--force", *(("--prune",) if prune else ()), "--", self._url, *refs)
        self._call(*options, "fetch", *words, ssh=way.ssh)

    def _run(self, *args: str, check: bool = True) -> Completed:
        return self._call("--git-dir", str(self._mirror), *args, check=check)

    def _call(self, *args: str, check: bool = True, ssh: str = SSH) -> Completed:
        environment = {
            **os.environ,
            "GIT_ALLOW_PROTOCOL": self._allowed,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_SSH_COMMAND": ssh,
            # The mirror of a path may belong to another user of this machine.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        try:
            done = run_bounded(["git", *args], environment, GIT_TIMEOUT_S)
        except TimeoutError as error:
            raise InvalidRequestError(
                f"git did not answer within {GIT_TIMEOUT_S} s; is its server reachable?"
            ) from error
        except TooMuchError as error:
            raise InvalidRequestError(f"git was ended: {error}") from error
        if check and done.returncode:
            words = self._without_url(done.stderr.decode(errors="replace").strip())[-500:]
            raise InvalidRequestError(f"git cannot read the repository: {words}")
        return done

    def _without_url(self, text: str) -> str:
        """What git printed, without this repository's URL and without the user of any URL.

        Messages reach people who may not know either; a user is often a token.
        """
        bare = _USER_INFO.sub("://", self._url)
        for url in {self._url, bare, bare.removesuffix(".git")}:
            text = text.replace(url, "the repository")
        return _USER_INFO.sub("://", text)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._mirror.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{self._mirror}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _commit(line: str) -> CommitFacts:
    sha, parents, committed_at, author, subject = line.split("\x1f", 4)
    return CommitFacts(
        sha=sha,
        parents=tuple(parents.split()),
        committed_at=datetime.fromisoformat(committed_at),
        author=author[:200],
        subject=subject[:300],
    )
