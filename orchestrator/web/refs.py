"""Resolve names in addresses, and offer branches, tags and commits in forms."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.refs import open_repository
from orchestrator.benchmarks.selectors import (
    load_benchmark_by_key,
    load_defined_benchmarks,
    search_commits,
)
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import load_run

#: The most branches and the most tags that are offered; typing finds the others.
MOST_NAMES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RefChoice:
    value: str
    label: str


def load_chosen_benchmark(member: Member, key: str) -> Benchmark | None:
    """Return the benchmark of an address; by default the team's first one with a definition."""
    return load_benchmark_by_key(member, key) if key else load_defined_benchmarks(member).first()


def find_chosen_benchmark(
    benchmarks: Sequence[Benchmark], member: Member, key: str
) -> Benchmark | None:
    """Return the same if all of the member's benchmarks are loaded already."""
    if not key:
        return next(iter(benchmarks), None)
    project, _, slug = key.rpartition("/")
    matches = [
        each for each in benchmarks if each.slug == slug and project in ("", each.project.slug)
    ]
    return matches[0] if len(matches) == 1 else load_benchmark_by_key(member, key)


def load_chosen_run(member: Member, text: str) -> Run | None:
    """Return the run of an address, if it names one."""
    if not text:
        return None
    try:
        return load_run(member, UUID(text))
    except ValueError as error:
        raise NotFoundError.build_for_team("run") from error


def load_ref_choices(member: Member, key: str, text: str = "") -> list[RefChoice]:
    """Return branches, tags and the latest known commits of a benchmark's project.

    With `text`, return those with the text in name, hash, subject or author, also old commits.
    """
    try:
        benchmark = load_chosen_benchmark(member, key)
    except NotFoundError:
        return []
    if benchmark is None:
        return []
    text = text.strip()
    return [
        *(
            RefChoice(value=name, label=kind)
            for kind, names in _read_ref_names(benchmark).items()
            for name in [name for name in names if text.lower() in name.lower()][:MOST_NAMES]
        ),
        *(
            RefChoice(value=commit.short_sha, label=commit.subject)
            for commit in search_commits(benchmark.project, text)
        ),
    ]


def _read_ref_names(benchmark: Benchmark) -> dict[str, list[str]]:
    """Return the names in the local mirror; none if it was not fetched yet."""
    repository = open_repository(benchmark.project)
    try:
        return {"branch": repository.branches(), "tag": repository.tags()}
    except InvalidRequestError:
        return {}
