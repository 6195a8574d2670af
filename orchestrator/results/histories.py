"""One metric of one case on one host along the commits."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import Host, HostChange
from orchestrator.fleet.selectors import changes_of
from orchestrator.loadtools.metrics import METRICS, Metric, latency_label, metric_for, metrics_of
from orchestrator.loadtools.script_metrics import PREFIX as SCRIPT_PREFIX
from orchestrator.results.doubts import doubts_in
from orchestrator.results.epochs import changes_between, epochs_of
from orchestrator.results.models import Series
from orchestrator.results.readings import values_of
from orchestrator.results.reports import History, HistoryChange, HistoryPoint
from orchestrator.results.selectors import asked_of, model_of
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState, Validity
from orchestrator.stats.summary import summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChoices:
    """What can be charted of a benchmark: only what has been measured."""

    cases: tuple[Case, ...]
    hosts: tuple[Host, ...]
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """One trial of a series."""

    commit: int
    value: float
    at: datetime
    validity: str
    reasons: list[str]


def history_choices(member: Member, benchmark: Benchmark) -> HistoryChoices:
    measured = {"trials__state": "measured", "benchmark__project__team": member.team}
    cases = benchmark.cases.filter(**measured).distinct()
    hosts = Host.objects.filter(
        team=member.team,
        jobs__run__definition__benchmark=benchmark,
        jobs__trials__state="measured",
    ).distinct()
    own = Series.objects.filter(
        metric__key__startswith=SCRIPT_PREFIX, benchmark=benchmark
    ).values_list("metric__key", flat=True)
    known = metrics_of({*METRICS, *own.distinct()})
    judged = tuple(info for info in known if not info.informational)
    return HistoryChoices(cases=tuple(cases), hosts=tuple(hosts), metrics=judged)


def history_of(
    member: Member, *, benchmark: Benchmark, metric_key: str, case: Case, host: Host
) -> History:
    """The points of one series, oldest commit first: the valid trials of each commit.

    `changes` mark where the host itself was not the same for two points that follow each other.
    """
    info = metric_for(metric_key)
    if info is None:
        raise InvalidRequestError(f"there is no metric {metric_key}", field="metric")
    trials = Trial.objects.filter(
        case=case,
        host=host,
        job__run__team=member.team,
        job__run__definition__benchmark=benchmark,
        state=TrialState.MEASURED,
    )
    measured = defaultdict(list)
    for each in _values(trials, metric_key):
        measured[each.commit].append(each)
    commits = Commit.objects.in_bulk(list(measured))
    changes = list(changes_of(host))
    points = [_point(commits[pk], found, changes) for pk, found in measured.items()]
    in_order = sorted((point for point in points if point is not None), key=_place)
    return History(
        benchmark=benchmark,
        case=case,
        host=host,
        key=info.key,
        title=info.title,
        unit=info.unit,
        better=info.better,
        points=tuple(in_order),
        changes=_marks(in_order, changes),
        left_out=sum(not _counts(each) for found in measured.values() for each in found),
        label=_label(trials, metric_key),
    )


def _values(trials: QuerySet[Trial], metric_key: str) -> Iterator[_Value]:
    rows = trials.values_list(
        "pk",
        "variant__commit_id",
        Coalesce("job__snapshot__taken_at", "started_at", "job__created_at"),
        "validity",
        "reasons",
    )
    found = list(rows)
    values = values_of([row[0] for row in found], [metric_key])
    for pk, commit, at, validity, reasons in found:
        if pk in values:
            value = values[pk][metric_key]
            yield _Value(commit=commit, value=value, at=at, validity=validity, reasons=reasons)


def _counts(each: _Value) -> bool:
    return each.validity != Validity.INVALID


def _label(trials: QuerySet[Trial], metric_key: str) -> str | None:
    """What has to stand beside a latency: that of the newest trial."""
    newest = trials.select_related("case", "job__run__definition").order_by("-pk").first()
    model = model_of(asked_of(newest)) if newest else None
    return latency_label(metric_key, model) if model else None


def _point(
    commit: Commit, measured: list[_Value], changes: list[HostChange]
) -> HistoryPoint | None:
    """None where no trial counts."""
    kept = [each for each in measured if _counts(each)]
    summary = summarise([each.value for each in kept])
    if summary is None:
        return None
    interval = None if summary.low is None or summary.high is None else (summary.low, summary.high)
    return HistoryPoint(
        commit=commit,
        value=summary.mean,
        interval=interval,
        trials=summary.n,
        suspect=sum(each.validity == Validity.SUSPECT for each in kept),
        left_out=len(measured) - len(kept),
        doubts=doubts_in([each.reasons for each in measured if each.validity != Validity.VALID]),
        epochs=epochs_of((each.at for each in kept), [change.at for change in changes]),
    )


def _marks(points: list[HistoryPoint], changes: list[HostChange]) -> tuple[HistoryChange, ...]:
    return tuple(
        HistoryChange(before=place, at=changes[number].at, changed=changes[number].changed)
        for place, number in changes_between([point.epochs for point in points])
    )


def _place(point: HistoryPoint) -> tuple[bool, int, object]:
    """Along the default branch; commits of other branches follow by their date."""
    commit = point.commit
    return (commit.position is None, commit.position or 0, commit.committed_at)
