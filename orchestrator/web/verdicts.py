"""The verdicts of a run, as cards and badges show them."""

from dataclasses import dataclass

from django.core.cache import cache

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Commit
from orchestrator.core.errors import NotFoundError
from orchestrator.results.comparisons import compare_commits
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED

_KEEP_S = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCard:
    baseline: Commit
    contender: Commit
    verdict: str
    summary: str


def verdict_cards(member: Member, run: Run) -> list[VerdictCard]:
    """One card a contender for which there are blocks; what has ended is computed once a day."""
    key = f"verdicts:{run.pk}"
    cards = cache.get(key) if run.state in RUN_ENDED else None
    if cards is None:
        cards = _cards(member, run)
        if run.state in RUN_ENDED:
            cache.set(key, cards, _KEEP_S)
    return cards


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
    )
