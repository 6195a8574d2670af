"""Behind a compared case: the trials of its blocks, and the point of each of its numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Coalesce

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.compared import CaseComparison, ComparisonReport
from orchestrator.measurements.comparability import block_of
from orchestrator.results.models import Series
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState, Validity

#: A page shows no more blocks, the newest.
MOST_BLOCKS = 100
_ENDED = (TrialState.MEASURED, TrialState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindTrial:
    """`tool` is that which made the load, with its version; empty where nobody told."""

    id: UUID
    run: UUID
    round: int
    host: str
    at: datetime | None
    state: str
    validity: str
    reasons: Sequence[str]
    message: str
    tool: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The trials of both sides in one block; of one side alone where the sides share none.

    What does not `count` was left out.
    """

    baseline: BehindTrial | None
    contender: BehindTrial | None
    counts: bool

    @property
    def sides(self) -> tuple[BehindTrial | None, BehindTrial | None]:
        return self.baseline, self.contender

    @property
    def known(self) -> BehindTrial:
        found = self.baseline or self.contender
        assert found is not None
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The newest blocks first; `more` are not among them.

    `points`: metric key → series of the baseline's and of the contender's number; None where a
    side is of several hosts.
    """

    blocks: tuple[Block, ...]
    more: int
    points: Mapping[str, tuple[int | None, int | None]]


def behind(report: ComparisonReport, case: CaseComparison) -> Behind:
    """Of one case of a report."""
    hosts = _hosts(case)
    counted = case.cell.blocks if case.cell else (frozenset[int](), frozenset[int]())
    asked = [side.definition.version if side.definition else None for side in report.sides]
    sides = [
        _trials(report.benchmark, commit, pk, on, version)
        for commit, pk, on, version in zip(
            (report.baseline, report.contender),
            (case.case.pk, case.contender_case.pk),
            hosts,
            asked,
            strict=True,
        )
    ]
    blocks = _blocks(sides[0], sides[1], counted, paired=case.paired)
    return Behind(
        blocks=tuple(blocks[:MOST_BLOCKS]),
        more=max(0, len(blocks) - MOST_BLOCKS),
        points=_points(case, hosts),
    )


def _hosts(case: CaseComparison) -> tuple[list[UUID], list[UUID]]:
    if case.cell is None:
        return [case.host.pk], [case.contender_host.pk]
    before, after = (
        list(dict.fromkeys(UUID(each.place.host) for each in side))
        for side in (case.cell.baseline, case.cell.contender)
    )
    return before, after


def _trials(
    benchmark: Benchmark, commit: Commit, case: int, hosts: Sequence[UUID], version: int | None
) -> dict[int, BehindTrial]:
    """Block → trial that ended."""
    trials = Trial.objects.filter(
        variant__commit=commit,
        case=case,
        state__in=_ENDED,
        job__run__definition__benchmark=benchmark,
    ).alias(on=Coalesce("host_id", "job__host_id"))
    rows = trials.filter(on__in=hosts).order_by()
    if version is not None:
        rows = rows.filter(job__run__definition__version=version)
    told = rows.values_list(
        "pk", "job_id", "job__run_id", "round", Coalesce("host__name", "job__host__name"),
        "started_at", "state", "validity", "reasons", "message", "provenance__tool",
        "job__run__definition__version",
    )  # fmt: skip
    return {block_of(job, number): _trial(pk, run, number, rest)
            for pk, job, run, number, *rest in told}  # fmt: skip


def _trial(pk: UUID, run: UUID, number: int, rest: Sequence[Any]) -> BehindTrial:
    host, at, state, validity, reasons, message, tool, version = rest
    named = tool if isinstance(tool, dict) else {}
    return BehindTrial(
        id=pk,
        run=run,
        round=number,
        host=host,
        at=at,
        state=state,
        validity=validity,
        reasons=reasons or (),
        message=message,
        tool=" ".join(str(named[key]) for key in ("name", "version") if named.get(key)),
        version=version,
    )


def _blocks(
    before: Mapping[int, BehindTrial],
    after: Mapping[int, BehindTrial],
    counted: tuple[frozenset[int], frozenset[int]],
    *,
    paired: bool,
) -> list[Block]:
    """Those that are compared, and those that were left out for a trial that does not count."""
    found = []
    for number in dict.fromkeys([*before, *after]):
        first, second = before.get(number), after.get(number)
        counts = number in counted[0] or number in counted[1]
        void = _is_void(filter(None, (first, second))) and (not paired or (first and second))
        if counts or void:
            found.append(Block(baseline=first, contender=second, counts=counts))
    return sorted(found, key=_when, reverse=True)


def _is_void(trials: Iterable[BehindTrial]) -> bool:
    return any(each.state == TrialState.FAILED or each.validity == Validity.INVALID
               for each in trials)  # fmt: skip


def _when(block: Block) -> tuple[float, int]:
    at = block.known.at
    return (at.timestamp() if at else 0.0), block.known.round


def _points(
    case: CaseComparison, hosts: tuple[Sequence[UUID], Sequence[UUID]]
) -> dict[str, tuple[int | None, int | None]]:
    """Metric key → the series of both numbers."""
    places = [
        (pk, on[0]) if len(on) == 1 else None
        for pk, on in zip((case.case.pk, case.contender_case.pk), hosts, strict=True)
    ]
    known = [place for place in places if place is not None]
    rows = Series.objects.filter(
        case__in=[pk for pk, _ in known], host__in=[host for _, host in known]
    ).values_list("case_id", "host_id", "metric__key", "pk")
    series = {((pk, host), key): number for pk, host, key, number in rows}
    return {
        metric.key: (
            series.get((places[0], metric.key)) if places[0] else None,
            series.get((places[1], metric.key)) if places[1] else None,
        )
        for metric in case.metrics
    }
