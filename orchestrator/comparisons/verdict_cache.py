"""The verdict of each contender of a run; those of ended runs are stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any
from uuid import UUID

from orchestrator.accounts.members import Member, build_system_member
from orchestrator.benchmarks.models import Commit
from orchestrator.comparisons.compare import compare_sides
from orchestrator.comparisons.models import RunVerdict
from orchestrator.comparisons.ranking import ORDER
from orchestrator.comparisons.report import ComparisonReport
from orchestrator.comparisons.sides import Side
from orchestrator.core.errors import NotFoundError
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED, RunState
from orchestrator.stats.comparison import Verdict

#: At most this many changed cases of a contender are stored with its verdict.
MAX_CHANGES = 200
#: At most this many verdicts of cases are stored with it.
MAX_CELLS = 300
RUNS_AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """A case that failed, was fixed, regressed or improved on a host.

    `metric` and `change`: its most changed primary metric, with the likely change; empty and None
    if a side failed.
    """

    case: int
    label: str
    host: str
    host_name: str
    verdict: str
    metric: str
    change: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellVerdict:
    """The verdict of a case on a host."""

    case: int
    host: str
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCard:
    """`suspect`: the number of compared blocks with a suspect trial; `excluded`: of other blocks.

    `changes`: failures and regressions first, the largest first. `cells`: the verdicts of all
    cases. `counts`: verdict → number of cases.
    """

    baseline: Commit
    contender: Commit
    verdict: str
    summary: str
    excluded: int
    suspect: int
    changes: tuple[CaseChange, ...] = ()
    cells: tuple[CellVerdict, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


def load_verdict_cards(member: Member, runs: Sequence[Run]) -> dict[UUID, list[VerdictCard]]:
    """For each run a card for each contender that has blocks; of ended runs only if `_may_judge`.

    The cards of runs that are not stored (`store_verdicts`) are computed.
    """
    stored = dict(
        RunVerdict.objects.filter(run__in=[run.pk for run in runs]).values_list("run_id", "cards")
    )
    return {
        run.pk: _from_columns(run, stored[run.pk]) if run.pk in stored else _compute(member, run)
        for run in runs
    }


def store_verdicts(run: Run) -> None:
    """Stores the cards of an ended run, unless they are stored already."""
    if run.state not in RUN_ENDED or RunVerdict.objects.filter(run=run).exists():
        return
    cards = [_to_columns(card) for card in _compute(build_system_member(run.team), run)]
    RunVerdict.objects.bulk_create([RunVerdict(run=run, cards=cards)], ignore_conflicts=True)


def store_missing_verdicts() -> None:
    """Stores the cards of ended runs without stored ones, of at most RUNS_AT_ONCE runs."""
    ended = Run.objects.filter(state__in=RUN_ENDED, verdict=None).order_by("-ended_at")
    related = ended.select_related("team", "definition__benchmark__project__team")
    for run in related.prefetch_related("variants__commit")[:RUNS_AT_ONCE]:
        store_verdicts(run)


def _to_columns(card: VerdictCard) -> list[Any]:
    return [
        card.baseline.pk,
        card.contender.pk,
        card.verdict,
        card.summary,
        card.excluded,
        card.suspect,
        [astuple(change) for change in card.changes],
        [astuple(cell) for cell in card.cells],
        card.counts,
    ]


def _from_columns(run: Run, cards: Iterable[Sequence[Any]]) -> list[VerdictCard]:
    commits = {variant.commit_id: variant.commit for variant in run.variants.all()}
    return [
        VerdictCard(
            baseline=commits[baseline],
            contender=commits[contender],
            verdict=verdict,
            summary=summary,
            excluded=excluded,
            suspect=suspect,
            changes=tuple(map(_change, changes)),
            cells=tuple(
                CellVerdict(case=case, host=host, verdict=each) for case, host, each in cells
            ),
            counts=counts,
        )
        for (
            baseline,
            contender,
            verdict,
            summary,
            excluded,
            suspect,
            changes,
            cells,
            counts,
        ) in cards
    ]


def _change(columns: Sequence[Any]) -> CaseChange:
    names = (each.name for each in fields(CaseChange))
    return CaseChange(**dict(zip(names, columns, strict=True)))


def _compute(member: Member, run: Run) -> list[VerdictCard]:
    baseline, *contenders = [variant.commit for variant in run.variants.all()]
    cards = (_build_card(member, run, baseline, contender) for contender in contenders)
    return [card for card in cards if card is not None]


def _build_card(
    member: Member, run: Run, baseline: Commit, contender: Commit
) -> VerdictCard | None:
    try:
        report = compare_sides(
            member,
            benchmark=run.definition.benchmark,
            sides=(Side(commit=baseline), Side(commit=contender)),
            run=run,
            all_metrics=False,
        )
    except NotFoundError:
        return None
    if run.state in RUN_ENDED and not _may_judge(run, report):
        return None
    return VerdictCard(
        baseline=baseline,
        contender=contender,
        verdict=str(report.verdict),
        summary=report.summary,
        excluded=sum(case.excluded_blocks for case in report.cases),
        suspect=sum(case.suspect_blocks for case in report.cases),
        changes=tuple(_iterate_changes(report))[:MAX_CHANGES],
        cells=tuple(
            CellVerdict(case=row.case.pk, host=str(row.host.pk), verdict=str(row.verdict))
            for row in report.cases[:MAX_CELLS]
        ),
        counts=report.counts,
    )


def _may_judge(run: Run, report: ComparisonReport) -> bool:
    """Return whether a verdict says something about the commits, and not only how the run ended.

    Without blocks nothing was compared. A failed run is incomplete, so it is never inconclusive.
    """
    if run.state == RunState.FAILED and report.verdict == Verdict.INCONCLUSIVE:
        return False
    return report.has_data


def _iterate_changes(report: ComparisonReport) -> Iterator[CaseChange]:
    for row in report.cases:
        if ORDER[row.verdict] > ORDER[Verdict.IMPROVED]:
            continue
        metrics = [m for m in row.metrics if m.primary and m.verdict == row.verdict]
        most = max(metrics, key=lambda metric: abs(metric.change or 0.0), default=None)
        yield CaseChange(
            case=row.case.pk,
            label=row.case.label,
            host=str(row.host.pk),
            host_name=row.host.name,
            verdict=row.verdict,
            metric=most.title if most else "",
            change=most.best_change if most else None,
        )
