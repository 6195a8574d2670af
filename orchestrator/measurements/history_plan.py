"""Plan the import of a history: the commit of each value, a preview, and the results to store."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from orchestrator.benchmarks.commit_matching import CommitMatches, build_hash, match_commits
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.reported_commits import ReportedCommit
from orchestrator.core.errors import InvalidRequestError
from orchestrator.importers.history_values import HistoryFile, HistoryValue
from orchestrator.loadtools.metrics import find_metric
from orchestrator.measurements.bulk_import import MOST_FAULTS
from orchestrator.measurements.incoming import ResultIn
from orchestrator.measurements.result_files import format_error

#: Unknown commits and hosts that a preview names.
MOST_EXAMPLES = 10

#: Hash → date, for values without one.
DateOf = Callable[[str], datetime | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPlan:
    """The values of a file, and the commits of the project that they belong to."""

    project: Project
    file: HistoryFile
    matches: CommitMatches

    def find_sha(self, value: HistoryValue) -> str | None:
        """Return the hash of the value's commit; None if the project has none."""
        if value.commit:
            return self.matches.by_name.get(value.commit)
        return None if value.at is None else self.matches.by_date.get(value.at)

    @property
    def known_shas(self) -> set[str]:
        return {*self.matches.by_name.values(), *self.matches.by_date.values()}

    @property
    def has_unknown_names(self) -> bool:
        return any(self.find_sha(value) is None for value in self.file.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkPreview:
    """`exists`: the project has this benchmark already."""

    slug: str
    exists: bool
    series: int
    values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownCommit:
    name: str
    subject: str
    at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPreview:
    """What the import of a history would store.

    `unknown`: results without a value. `spread`: values that describe the spread of others.
    `undirected`: series whose better direction is unknown; no changes are searched in them.
    `by_date`: matched commits of results that only have a date. `unknown_commits` are examples.
    `fetch_problem`: why commits were matched with an older state of the repository.
    """

    format: str
    values: int
    series: int
    unknown: int
    spread: int
    undirected: int
    benchmarks: tuple[BenchmarkPreview, ...]
    hosts: tuple[str, ...]
    commits: int
    matched: int
    by_date: int
    unknown_values: int
    unknown_commits: tuple[UnknownCommit, ...]
    first_at: str | None
    last_at: str | None
    has_repository: bool
    fetch_problem: str


def plan_history(project: Project, file: HistoryFile) -> HistoryPlan:
    """Match the commits of a file. InvalidRequestError if a value has neither commit nor date."""
    for value in file.values:
        if not value.commit and value.at is None:
            raise InvalidRequestError(
                f"{value.place}: it names neither a commit nor a date; name the commit of the file",
                field="commit",
            )
    matches = match_commits(
        project,
        {value.commit for value in file.values if value.commit},
        {value.at for value in file.values if not value.commit and value.at is not None},
    )
    return HistoryPlan(project=project, file=file, matches=matches)


def build_preview(plan: HistoryPlan, *, fetch_problem: str = "") -> HistoryPreview:
    """Describe what an import of all values would store."""
    values = plan.file.values
    series = {_identify_series(value) for value in values}
    unknown = _list_unknown(plan)
    commits = {_name_commit(value) for value in values}
    dates = sorted(value.at for value in values if value.at is not None)
    return HistoryPreview(
        format=plan.file.format,
        values=len(values),
        series=len(series),
        unknown=plan.file.unknown,
        spread=plan.file.spread,
        undirected=sum(_is_undirected(metric) for _, _, _, metric in series),
        benchmarks=_preview_benchmarks(plan),
        hosts=tuple(sorted({value.host for value in values})[:MOST_EXAMPLES]),
        commits=len(commits),
        matched=len(commits) - len(unknown),
        by_date=len(plan.matches.by_date),
        unknown_values=sum(plan.find_sha(value) is None for value in values),
        unknown_commits=tuple(
            UnknownCommit(
                name=name,
                subject=value.subject,
                at=_format_instant(value.committed_at or value.at),
            )
            for name, value in list(unknown.items())[:MOST_EXAMPLES]
        ),
        first_at=_format_instant(dates[0] if dates else None),
        last_at=_format_instant(dates[-1] if dates else None),
        has_repository=bool(plan.project.repository_url),
        fetch_problem=fetch_problem,
    )


def list_reported_commits(plan: HistoryPlan) -> list[ReportedCommit]:
    """Return the commits that the project does not have, with what the file says about them."""
    return [
        ReportedCommit(
            sha=build_hash(name),
            subject=value.subject or _build_subject(value),
            author=value.author,
            committed_at=value.committed_at or value.at,
            branch=value.branch,
        )
        for name, value in _list_unknown(plan).items()
    ]


def build_results(
    plan: HistoryPlan, *, keep_unknown: bool, date_of: DateOf = lambda sha: None
) -> Iterator[ResultIn]:
    """Yield the results to store; InvalidRequestError lists values that cannot be stored.

    The id of a result is built from its metric, time and value. So a repeated import adds nothing,
    and equal results of one file are all kept.
    """
    seen: Counter[tuple[object, ...]] = Counter()
    faults: list[tuple[str, str]] = []
    for value in sorted(plan.file.values, key=_get_time):
        sha = plan.find_sha(value)
        if sha is None and not keep_unknown:
            continue
        sha = sha or build_hash(_name_commit(value))
        identity = (*_identify_series(value), value.benchmark, sha, value.at, value.value)
        seen[identity] += 1
        try:
            yield _build_result(plan, value, sha, seen[identity], date_of)
        except ValidationError as error:
            faults.append((value.place, format_error(error)))
        if len(faults) >= MOST_FAULTS:
            break
    if faults:
        raise InvalidRequestError.from_faults(faults)


def _build_result(
    plan: HistoryPlan, value: HistoryValue, sha: str, number: int, date_of: DateOf
) -> ResultIn:
    moment = value.at.isoformat() if value.at else "-"
    again = f" {number}" if number > 1 else ""
    return ResultIn(
        project=plan.project.slug,
        benchmark=value.benchmark,
        host=value.host,
        commit=sha,
        parameters=dict(value.parameters),
        metrics={value.metric: value.value},
        at=value.at or date_of(sha),
        id=f"{value.metric} {moment} {value.value!r}{again}",
    )


def _get_time(value: HistoryValue) -> float:
    return value.at.timestamp() if value.at else 0.0


def _name_commit(value: HistoryValue) -> str:
    """Return the name of the commit, or the date in its place."""
    if value.commit or value.at is None:
        return value.commit
    return value.at.isoformat()


def _list_unknown(plan: HistoryPlan) -> dict[str, HistoryValue]:
    """Map the name of each unknown commit to its oldest value."""
    unknown: dict[str, HistoryValue] = {}
    for value in sorted(plan.file.values, key=_get_time):
        if plan.find_sha(value) is None:
            unknown.setdefault(_name_commit(value), value)
    return unknown


def _build_subject(value: HistoryValue) -> str:
    """Return the subject of an unknown commit; empty for a hash, which names itself."""
    if not value.commit and value.at is not None:
        return f"Results of {value.at:%Y-%m-%d %H:%M} UTC"
    is_hash = build_hash(value.commit).startswith(value.commit.lower())
    return "" if is_hash else value.commit.replace("\0", "").partition("\n")[0][:300]


def _identify_series(value: HistoryValue) -> tuple[str, str, str, str]:
    return value.benchmark, value.host, repr(sorted(value.parameters.items())), value.metric


def _is_undirected(metric: str) -> bool:
    known = find_metric(metric)
    return known is None or known.informational


def _preview_benchmarks(plan: HistoryPlan) -> tuple[BenchmarkPreview, ...]:
    series: Mapping[str, set[tuple[str, ...]]] = defaultdict(set)
    counts = Counter(value.benchmark for value in plan.file.values)
    for value in plan.file.values:
        series[value.benchmark].add(_identify_series(value))
    existing = set(
        plan.project.benchmarks.filter(slug__in=list(counts)).values_list("slug", flat=True)
    )
    return tuple(
        BenchmarkPreview(
            slug=slug, exists=slug in existing, series=len(series[slug]), values=counts[slug]
        )
        for slug in sorted(counts)
    )


def _format_instant(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()
