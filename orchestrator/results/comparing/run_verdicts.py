"""The verdict of each contender of a run, made once a run has ended."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from orchestrator.accounts.members import Member, member_of
from orchestrator.accounts.models import Membership, Role
from orchestrator.benchmarks.models import Commit
from orchestrator.core.errors import NotFoundError
from orchestrator.results.comparing.comparisons import compare_commits
from orchestrator.results.models import RunVerdict
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCard:
    """`suspect` of the compared blocks hold a suspect trial; `voided` ones were left out."""

    baseline: Commit
    contender: Commit
    verdict: str
    summary: str
    voided: int
    suspect: int


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
    admin = Membership.objects.filter(team=run.team, role=Role.ADMIN).select_related("team", "user")
    if (first := admin.first()) is not None:
        cards_of(member_of(first), [run])


def _kept(card: VerdictCard) -> list[str | int]:
    return [
        card.baseline.pk,
        card.contender.pk,
        card.verdict,
        card.summary,
        card.voided,
        card.suspect,
    ]


def _read(run: Run, cards: Iterable[Sequence[Any]]) -> list[VerdictCard]:
    commits = {variant.commit_id: variant.commit for variant in run.variants.all()}
    return [
        VerdictCard(
            baseline=commits[baseline],
            contender=commits[contender],
            verdict=verdict,
            summary=summary,
            voided=voided,
            suspect=suspect,
        )
        for baseline, contender, verdict, summary, voided, suspect in cards
    ]


def _made(member: Member, run: Run) -> list[VerdictCard]:
    baseline, *contenders = [variant.commit for variant in run.variants.all()]
    cards = (_card(member, run, baseline, contender) for contender in contenders)
    return [card for card in cards if card is not None]


def _card(member: Member, run: Run, baseline: Commit, contender: Commit) -> VerdictCard | None:
    try:
        report = compare_commits(
            member,
            benchmark=run.definition.benchmark,
            baseline=baseline,
            contender=contender,
            run=run,
        )
    except NotFoundError:
        return None
    return VerdictCard(
        baseline=baseline,
        contender=contender,
        verdict=str(report.verdict),
        summary=report.summary,
        voided=sum(case.voided_blocks for case in report.cases),
        suspect=sum(case.suspect_blocks for case in report.cases),
    )
