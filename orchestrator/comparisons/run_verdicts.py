"""The verdict of each contender of a run, made once a run has ended."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any
from uuid import UUID

from orchestrator.accounts.members import Member, member_of
from orchestrator.accounts.models import Membership, Role
from orchestrator.benchmarks.models import Commit
from orchestrator.comparisons.compare import compare_sides
from orchestrator.comparisons.compared import ComparisonReport
from orchestrator.comparisons.sides import Side
from orchestrator.core.errors import NotFoundError
from orchestrator.results.models import RunVerdict
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED

#: So many changed cases of a contender are kept with its verdict.
MOST_CHANGES = 200
_CHANGED = frozenset({"regressed", "improved"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """A case that regressed or improved on a host, and the primary metric that says it most."""

    case: int
    label: str
    host: str
    host_name: str
    verdict: str
    metric: str
    change: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCard:
    """`suspect` of the compared blocks hold a suspect trial; `excluded` ones do not count.

    `changes`: regressions first, the largest first.
    """

    baseline: Commit
    contender: Commit
    verdict: str
    summary: str
    excluded: int
    suspect: int
    changes: tuple[CaseChange, ...] = ()


def cards_of(member: Member, runs: Sequence[Run]) -> dict[UUID, list[VerdictCard]]:
    """For each run one card a contender for which there are blocks.

    Those of runs that have ended are kept; of others they are made again each time.
    """
    kept = dict(
        RunVerdict.objects.filter(run__in=[run.pk for run in runs]).values_list("run_id", "cards")
    )
    found = {
        run.pk: _read(run, kept[run.pk]) if run.pk in kept else _made(member, run) for run in runs
    }
    ended = [run for run in runs if run.state in RUN_ENDED and run.pk not in kept]
    RunVerdict.objects.bulk_create(
        (RunVerdict(run=run, cards=[_kept(card) for card in found[run.pk]]) for run in ended),
        ignore_conflicts=True,
    )
    return found


def keep_verdicts(run: Run) -> None:
    """Makes those of a run that has ended, where nobody has looked yet; before its trials go."""
    if RunVerdict.objects.filter(run=run).exists():
        return
    owners = Membership.objects.filter(team=run.team, role=Role.OWNER).select_related(
        "team", "user"
    )
    if (first := owners.first()) is not None:
        cards_of(member_of(first), [run])


def _kept(card: VerdictCard) -> list[Any]:
    return [
        card.baseline.pk,
        card.contender.pk,
        card.verdict,
        card.summary,
        card.excluded,
        card.suspect,
        [astuple(change) for change in card.changes],
    ]


def _read(run: Run, cards: Iterable[Sequence[Any]]) -> list[VerdictCard]:
    commits = {variant.commit_id: variant.commit for variant in run.variants.all()}
    return [
        VerdictCard(
            baseline=commits[baseline],
            contender=commits[contender],
            verdict=verdict,
            summary=summary,
            excluded=excluded,
            suspect=suspect,
            # What was kept before there were any has none.
            changes=tuple(_change(each) for each in (changes[0] if changes else ())),
        )
        for baseline, contender, verdict, summary, excluded, suspect, *changes in cards
    ]


def _change(kept: Sequence[Any]) -> CaseChange:
    return CaseChange(**dict(zip((each.name for each in fields(CaseChange)), kept, strict=True)))


def _made(member: Member, run: Run) -> list[VerdictCard]:
    baseline, *contenders = [variant.commit for variant in run.variants.all()]
    cards = (_card(member, run, baseline, contender) for contender in contenders)
    return [card for card in cards if card is not None]


def _card(member: Member, run: Run, baseline: Commit, contender: Commit) -> VerdictCard | None:
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
    return VerdictCard(
        baseline=baseline,
        contender=contender,
        verdict=str(report.verdict),
        summary=report.summary,
        excluded=sum(case.excluded_blocks for case in report.cases),
        suspect=sum(case.suspect_blocks for case in report.cases),
        changes=tuple(_changes(report))[:MOST_CHANGES],
    )


def _changes(report: ComparisonReport) -> Iterator[CaseChange]:
    for row in report.cases:
        if row.verdict not in _CHANGED:
            continue
        said = [each for each in row.metrics if each.primary and each.verdict == row.verdict]
        most = max(said, key=lambda each: abs(each.change or 0.0), default=None)
        yield CaseChange(
            case=row.case.pk,
            label=row.case.label,
            host=str(row.host.pk),
            host_name=row.host.name,
            verdict=row.verdict,
            metric=most.title if most else "",
            change=most.change if most else None,
        )
