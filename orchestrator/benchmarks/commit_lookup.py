"""Look up many commits in a project's mirror at once: by hash, tag or date."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from orchestrator.benchmarks.commit_facts import COMMIT_FIELDS, CommitFacts, parse_commit
from orchestrator.benchmarks.git_calls import call_git, is_repository
from orchestrator.benchmarks.repository import MOST_LISTED_BYTES
from orchestrator.benchmarks.selectors import LEAST_DIGITS

#: Commits whose facts are read by one call of git.
_DESCRIBED_AT_ONCE = 500


class CommitLookup:
    """Reads a mirror as of its last fetch; before the first fetch it knows no commit."""

    def __init__(self, mirror: Path) -> None:
        self._mirror = mirror

    @property
    def is_empty(self) -> bool:
        return not is_repository(self._mirror)

    def match_hashes(self, prefixes: Collection[str]) -> dict[str, str]:
        """Map full and abbreviated hashes to the commits that branches and tags reach.

        An unknown or ambiguous one is left out. Each has at least LEAST_DIGITS digits.
        """
        if self.is_empty or not prefixes:
            return {}
        selection = _HashSelection(prefixes)
        call_git(
            "--git-dir", str(self._mirror), "rev-list", "--all", "--",
            target=selection, most_bytes=MOST_LISTED_BYTES,
        )  # fmt: skip
        return {prefix: sha for prefix, sha in selection.matches.items() if sha}

    def load_tags(self) -> dict[str, str]:
        """Map the names of tags to the hashes of their commits."""
        if self.is_empty:
            return {}
        listed = self._git(
            "for-each-ref", "--format=%(objectname) %(*objectname) %(refname:short)", "refs/tags"
        )
        rows = (line.split(" ", 2) for line in listed.split("\n") if line)
        return {name: peeled or own for own, peeled, name in rows}

    def find_commits_at(self, branch: str, moments: Collection[datetime]) -> dict[datetime, str]:
        """Map each time to the newest commit of the branch's first parents that is not newer.

        A time before the first commit is left out.
        """
        if self.is_empty or not moments:
            return {}
        line = self._list_first_parents(branch)
        matches: dict[datetime, str] = {}
        place = 0
        for moment in sorted(moments, reverse=True):
            while place < len(line) and line[place][0] > moment.timestamp():
                place += 1
            if place < len(line):
                matches[moment] = line[place][1]
        return matches

    def list_in_order(self, ref: str) -> list[str]:
        """Return all commits of `ref` in topological order, parents first."""
        return self._git("rev-list", "--topo-order", "--reverse", ref, "--").split()

    def describe(self, shas: Sequence[str]) -> list[CommitFacts]:
        """Return the facts of these commits, in their order."""
        facts: list[CommitFacts] = []
        for start in range(0, len(shas), _DESCRIBED_AT_ONCE):
            part = shas[start : start + _DESCRIBED_AT_ONCE]
            log = self._git(
                "log", "-z", "--no-walk=unsorted", f"--format={COMMIT_FIELDS}", *part, "--"
            )
            facts += [parse_commit(line) for line in log.split("\0") if line]
        return facts

    def _list_first_parents(self, branch: str) -> list[tuple[int, str]]:
        listed = self._git(
            "log", "--first-parent", "--format=%ct %H", f"refs/heads/{branch}", "--", check=False
        )
        rows = (line.split() for line in listed.split("\n") if line)
        return [(int(at), sha) for at, sha in rows]

    def _git(self, *args: str, check: bool = True) -> str:
        output = call_git("--git-dir", str(self._mirror), *args, check=check)
        return output.stdout.decode(errors="replace")


class _HashSelection:
    """Reads a list of hashes, one per line, and maps abbreviated hashes to them.

    `matches`: the hash of each prefix; empty if it is ambiguous.
    """

    def __init__(self, prefixes: Collection[str]) -> None:
        buckets: dict[bytes, list[str]] = {}
        for prefix in prefixes:
            buckets.setdefault(prefix[:LEAST_DIGITS].encode(), []).append(prefix)
        self._buckets: Mapping[bytes, Sequence[str]] = buckets
        self._rest = b""
        self.matches: dict[str, str] = {}

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            for prefix in self._buckets.get(line[:LEAST_DIGITS], ()):
                sha = line.decode()
                if sha.startswith(prefix):
                    self.matches[prefix] = "" if prefix in self.matches else sha
