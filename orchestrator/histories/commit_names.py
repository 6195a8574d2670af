"""The short hashes of commits, their dates and their kind in the graph, cached in the process.

The hash and the date of a commit never change. Whether it is on the main line can change only with
a fetch of the project's repository, so cache entries are valid for one fetch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

#: The length of a hash in histories.
DIGITS = 8
#: The limit of cached commits; beyond it the cache is emptied.
MOST_REMEMBERED = 200_000

_NAMES = """
SELECT id, left(sha, %s), jsonb_array_length(parents) > 1, position IS NOT NULL AND NOT mainline,
    (committed_at AT TIME ZONE 'UTC')::date - date '1970-01-01'
FROM benchmarks_commit WHERE id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class CommitName:
    """`side`: a merge brought it into the default branch; it is not on the main line.

    `day`: the date of the commit in UTC, in days since 1970.
    """

    short: str
    merge: bool
    side: bool
    day: int


_known: dict[tuple[int, datetime | None], dict[int, CommitName]] = {}


def load_commit_names(
    project: int, fetched_at: datetime | None, commits: Sequence[int]
) -> list[CommitName]:
    """Return the names of these commits of a project as of its last fetch, in their order."""
    known = _get_known_names(project, fetched_at)
    missing = [commit for commit in commits if commit not in known]
    if missing:
        with connection.cursor() as cursor:
            cursor.execute(_NAMES, [DIGITS, missing])
            known |= {pk: CommitName(*rest) for pk, *rest in cursor.fetchall()}
    return [known[commit] for commit in commits]


def forget_commit_names() -> None:
    _known.clear()


def _get_known_names(project: int, fetched_at: datetime | None) -> dict[int, CommitName]:
    key = (project, fetched_at)
    if key not in _known:
        for old in [each for each in _known if each[0] == project]:
            _known.pop(old, None)
        if sum(map(len, list(_known.values()))) > MOST_REMEMBERED:
            _known.clear()
    return _known.setdefault(key, {})
