"""The verdicts of runs, as cards and badges show them."""

from collections.abc import Iterable

from orchestrator.accounts.members import Member
from orchestrator.comparisons.run_verdicts import VerdictCard, cards_of
from orchestrator.measurements.validity_issues import Doubts, doubts_of
from orchestrator.runs.models import Run


def verdict_cards(member: Member, run: Run) -> list[VerdictCard]:
    """One card a contender for which there are blocks."""
    return cards_of(member, [run])[run.pk]


def rows_of_runs(
    member: Member, runs: Iterable[Run]
) -> list[tuple[Run, list[VerdictCard], Doubts]]:
    """Runs as lists show them: with their verdicts, and how many trials are in doubt."""
    shown = list(runs)
    doubts = doubts_of([run.pk for run in shown])
    cards = cards_of(member, shown)
    return [(run, cards[run.pk], doubts[run.pk]) for run in shown]
