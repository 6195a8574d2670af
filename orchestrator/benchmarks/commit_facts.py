"""What git reports about a commit."""

from dataclasses import dataclass
from datetime import UTC, datetime

#: The fields of `parse_commit`, as a format of git.
COMMIT_FIELDS = "%H%x1f%P%x1f%ct%x1f%an%x1f%s"
#: 9999-12-31: Python has no later dates.
_LATEST_DATE_S = 253_402_214_400


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """`committed_at` is in 1970 to 9999; it is 1970-01-01 if the commit has no readable date."""

    sha: str
    parents: tuple[str, ...]
    committed_at: datetime
    author: str
    subject: str


def parse_commit(line: str) -> CommitFacts:
    sha, parents, seconds, author, subject = line.split("\x1f", 4)
    return CommitFacts(
        sha=sha,
        parents=tuple(parents.split()),
        committed_at=_parse_date(seconds),
        author=author[:200],
        subject=subject[:300],
    )


def _parse_date(seconds: str) -> datetime:
    """Parse git's `%ct`: it is empty without a readable date, and independent of time zones."""
    known = int(seconds) if seconds.isascii() and seconds.isdigit() and len(seconds) < 21 else 0
    return datetime.fromtimestamp(min(known, _LATEST_DATE_S), UTC)
