"""One metric of one case on one host along the commits."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.db.models.functions import Coalesce

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import Host, HostChange
from orchestrator.fleet.selectors import changes_of
from orchestrator.loadtools.metrics import METRICS, Metric, metric_for, metrics_of
from orchestrator.loadtools.script_metrics import PREFIX as SCRIPT_PREFIX
from orchestrator.results.epochs import changes_between, epochs_of
from orchestrator.results.models import Measurement
from orchestrator.results.reports import History, HistoryChange, HistoryPoint
from orchestrator.runs.states import Validity
from orchestrator.stats.summary import summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChoices:
    """What can be charted of a benchmark: only what has been measured."""

    cases: tuple[Case, ...]
    hosts: tuple[Host, ...]
    metrics: tuple[Metric, ...]


def history_choices(member: Member, benchmark: Benchmark) -> HistoryChoices:
    measured = {"trials__state": "measured", "benchmark__project__team": member.team}
    cases = benchmark.cases.filter(**measured).distinct()
    hosts = Host.objects.filter(
        team=member.team,
        jobs__run__definition__benchmark=benchmark,
        jobs__trials__state="measured",
    ).distinct()
    own = Measurement.objects.filter(
        metric__key__startswith=SCRIPT_PREFIX, trial__job__run__definition__benchmark=benchmark
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
    rows = Measurement.objects.filter(
        metric__key=metric_key,
        trial__case=case,
        trial__host=host,
        trial__job__run__team=member.team,
        trial__job__run__definition__benchmark=benchmark,
        trial__validity__in=[Validity.VALID, Validity.SUSPECT],
    ).values_list(
        "trial__variant__commit_id",
        "value",
        Coalesce("trial__job__snapshot__taken_at", "trial__started_at", "trial__job__created_at"),
    )
    measured = defaultdict(list)
    for commit_id, value, at in rows:
        measured[commit_id].append((value, at))
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
    )


def _point(
    commit: Commit, measured: list[tuple[float, datetime]], changes: list[HostChange]
) -> HistoryPoint | None:
    summary = summarise([value for value, _ in measured])
    if summary is None:
        return None
    interval = None if summary.low is None or summary.high is None else (summary.low, summary.high)
    return HistoryPoint(
        commit=commit,
        value=summary.mean,
        interval=interval,
        trials=summary.n,
        epochs=epochs_of((at for _, at in measured), [change.at for change in changes]),
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
