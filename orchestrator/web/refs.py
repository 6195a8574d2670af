"""Resolve names in addresses, and offer branches, tags and commits in forms."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.refs import repository_of
from orchestrator.benchmarks.selectors import benchmark_of_key, benchmarks_of, found_commits
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import run_for

#: The most branches and the most tags that are offered; typing finds the others.
MOST_NAMES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RefChoice:
    value: str
    label: str


def chosen_benchmark(member: Member, key: str) -> Benchmark | None:
    """Return the benchmark of an address; by default the team's first, if it has any."""
    return benchmark_of_key(member, key) if key else benchmarks_of(member).first()


def chosen_of(benchmarks: Sequence[Benchmark], member: Member, key: str) -> Benchmark | None:
    """Return the same if all of the member's benchmarks are loaded already."""
    if not key:
        return next(iter(benchmarks), None)
    project, _, slug = key.rpartition("/")
    found = [
        each for each in benchmarks if each.slug == slug and project in ("", each.project.slug)
    ]
    return found[0] if len(found) == 1 else benchmark_of_key(member, key)


def chosen_run(member: Member, text: str) -> Run | None:
    """Return the run of an address, if it names one."""
    if not text:
        return None
    try:
        return run_for(member, UUID(text))
    except ValueError as error:
        raise NotFoundError("there is no such run in this team") from error


def ref_choices(member: Member, key: str, text: str = "") -> list[RefChoice]:
    """Return branches, tags and the latest known commits of a benchmark's project.

    With `text`, return those with the text in name, hash, subject or author, also old commits.
    """
    try:
        benchmark = chosen_benchmark(member, key)
    except NotFoundError:
        return []
    if benchmark is None:
        return []
    text = text.strip()
    return [
        *(
            RefChoice(value=name, label=kind)
            for kind, names in _names(benchmark).items()
            for name in [name for name in names if text.lower() in name.lower()][:MOST_NAMES]
        ),
        *(
            RefChoice(value=commit.short_sha, label=commit.subject)
            for commit in found_commits(benchmark.project, text)
        ),
    ]


def _names(benchmark: Benchmark) -> dict[str, list[str]]:
    """Return the names in the local mirror; none if it was not fetched yet."""
    repository = repository_of(benchmark.project)
    try:
        return {"branch": repository.branches(), "tag": repository.tags()}
    except InvalidRequestError:
        return {}
