"""Match the commits that a file names with those of a project, and store the rows that are missing.

A name is a full or abbreviated hash, or a tag. Results that only have a date belong to the commit
that was the newest of the default branch then.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha1

from orchestrator.benchmarks.commit_lookup import CommitLookup
from orchestrator.benchmarks.filing import (
    build_commit_row,
    file_branch,
    file_default_branch,
)
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.refs import get_mirror_path, open_repository
from orchestrator.core.errors import InvalidRequestError

_HASH = re.compile(r"[0-9a-f]{7,40}")
_FULL = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMatches:
    """`by_name`: name → hash of the commits that are known; `by_date`: the same for dates."""

    by_name: Mapping[str, str]
    by_date: Mapping[datetime, str]


def match_commits(
    project: Project, names: Collection[str], moments: Collection[datetime]
) -> CommitMatches:
    """Match names and dates with the mirror as of its last fetch, and with stored commits."""
    lookup = _open_lookup(project)
    hashes = {name: name.lower() for name in names if _HASH.fullmatch(name.lower())}
    wanted = set(hashes.values())
    known = lookup.match_hashes(wanted) if lookup else {}
    if missing := wanted - known.keys():
        known |= _match_stored(project, missing)
    by_name = {name: known[text] for name, text in hashes.items() if text in known}
    if lookup and (others := set(names) - hashes.keys()):
        tags = lookup.load_tags()
        tagged = {name: tags.get(name) or tags.get(f"v{name}") for name in others}
        by_name |= {name: sha for name, sha in tagged.items() if sha}
    by_date = lookup.find_commits_at(project.default_branch, moments) if lookup else {}
    stored = _list_stored(project, {build_hash(name) for name in set(names) - by_name.keys()})
    by_name |= {name: build_hash(name) for name in names if build_hash(name) in stored}
    return CommitMatches(by_name=by_name, by_date=by_date)


def build_hash(name: str) -> str:
    """Return the hash under which an unknown commit is stored.

    A full hash stays. Zeros complete an abbreviated one; any other name gets a hash of itself.
    """
    text = name.lower()
    if _HASH.fullmatch(text):
        return text.ljust(_FULL, "0")
    return sha1(name.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()


def store_matched_commits(project: Project, shas: Collection[str]) -> None:
    """Store the commits of the mirror that have no row yet; call it outside of a transaction."""
    missing = _list_missing(project, shas)
    if not missing:
        return
    repository = open_repository(project)
    file_default_branch(project, repository)
    missing = _list_missing(project, missing)
    if missing:
        _store_older(project, missing)
        missing = _list_missing(project, missing)
    while missing:
        file_branch(project, repository, missing[0])
        missing = _list_missing(project, missing[1:])


def _open_lookup(project: Project) -> CommitLookup | None:
    if not project.repository_url:
        return None
    lookup = CommitLookup(get_mirror_path(project))
    return None if lookup.is_empty else lookup


def _match_stored(project: Project, prefixes: Collection[str]) -> dict[str, str]:
    """Match with rows: commits that clients reported, or that a branch has lost."""
    wanted, lengths = set(prefixes), sorted({len(each) for each in prefixes})
    matches: dict[str, set[str]] = {}
    for sha in project.commits.values_list("sha", flat=True).iterator():
        for prefix in (sha[:length] for length in lengths):
            if prefix in wanted:
                matches.setdefault(prefix, set()).add(sha)
    return {prefix: shas.pop() for prefix, shas in matches.items() if len(shas) == 1}


def _list_stored(project: Project, shas: Collection[str]) -> set[str]:
    """Return those hashes under which names of an earlier file are stored."""
    return set(project.commits.filter(sha__in=list(shas)).values_list("sha", flat=True))


def _list_missing(project: Project, shas: Iterable[str]) -> list[str]:
    wanted = list(shas)
    stored = _list_stored(project, wanted)
    return [sha for sha in wanted if sha not in stored]


def _store_older(project: Project, shas: Collection[str]) -> None:
    """Store commits of the default branch that are older than all that are stored.

    Only the newest commits of a repository are stored at first, with positions that leave room for
    the older ones.
    """
    repository = open_repository(project)
    tip = repository.find(project.default_branch)
    if tip is None:
        raise InvalidRequestError(
            f"there is no branch {project.default_branch} in the repository of {project.slug}"
        )
    lookup = CommitLookup(get_mirror_path(project))
    places = {sha: place for place, sha in enumerate(lookup.list_in_order(tip))}
    first = _find_first_stored(project, places)
    older = [sha for sha in shas if sha in places and places[sha] < places.get(first.sha, 0)]
    offset = (first.position or 0) - places.get(first.sha, 0)
    line = repository.select_first_parents(older, tip) if older else set()
    rows = []
    for facts in lookup.describe(older):
        position = places[facts.sha] + offset
        if position >= 0:
            row = build_commit_row(project, facts, position)
            row.mainline = facts.sha in line
            rows.append(row)
    Commit.objects.bulk_create(rows, ignore_conflicts=True)


def _find_first_stored(project: Project, places: Mapping[str, int]) -> Commit:
    """Return the commit with the lowest position that is on the default branch."""
    for commit in project.commits.filter(position__isnull=False).order_by("position").iterator():
        if commit.sha in places:
            return commit
    return Commit(project=project, sha="", position=0)
