"""The verdicts of a run, as cards and badges show them."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.core.cache import cache

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Commit
from orchestrator.core.errors import NotFoundError
from orchestrator.results.comparisons import compare_commits
from orchestrator.results.doubts import Doubts, doubts_of
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED

_KEEP_S = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCard:
    """`suspect` of the compared blocks hold a suspect trial; `voided` ones were left out."""

    baseline: Commit
    contender: Commit
    verdict: str
    summary: str
    voided: int
    suspect: int


def verdict_cards(member: Member, run: Run) -> list[VerdictCard]:
    """One card a contender for which there are blocks; what has ended is computed once a day."""
    key = f"verdicts-2:{run.pk}"
    cards = cache.get(key) if run.state in RUN_ENDED else None
    if cards is None:
        cards = _cards(member, run)
        if run.state in RUN_ENDED:
            cache.set(key, cards, _KEEP_S)
    return cards


def rows_of_runs(
    member: Member, runs: Iterable[Run]
) -> list[tuple[Run, list[VerdictCard], Doubts]]:
    """Runs as lists show them: with their verdicts, and how many trials are in doubt."""
    shown = list(runs)
    doubts = doubts_of([run.pk for run in shown])
    return [(run, verdict_cards(member, run), doubts[run.pk]) for run in shown]


def _cards(member: Member, run: Run) -> list[VerdictCard]:
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
