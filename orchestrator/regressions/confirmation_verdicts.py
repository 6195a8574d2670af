"""Apply the result of a confirmation run to a change point, also of another metric.

All confirmation runs around a change share one error rate: each further one needs a smaller p
value. Otherwise one of many runs would confirm a change that does not exist.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from cli.pitwall.units import format_change
from orchestrator.regressions.change_points import add_revision
from orchestrator.regressions.confirmation_readings import read_confirmation_run
from orchestrator.results.models import ChangePoint, ChangeState
from orchestrator.runs.models import Run, Trial, Trigger
from orchestrator.runs.states import RUN_ENDED
from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import Comparison, compute_standard_error
from orchestrator.stats.confirmation import (
    Confirmation,
    get_confirmation_spending,
    judge_confirmation,
)

#: The newest confirmation runs of a case that are read for an answer about a change point.
MOST_READ = 10

_STATES = {
    Confirmation.CONFIRMED: ChangeState.CONFIRMED,
    Confirmation.SMALL: ChangeState.SMALL,
    Confirmation.REFUTED: ChangeState.REFUTED,
    Confirmation.UNDECIDED: ChangeState.OPEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a confirmation run measured for a change point, its alphas, and what this means."""

    run: Run
    comparison: Comparison
    spending: Spending
    confirmation: Confirmation


def store_own_outcome(row: ChangePoint) -> bool:
    """Store the result of the change point's run. Return False if it measured nothing."""
    for outcome in iterate_outcomes(row):
        if outcome.run.pk == row.run_id:
            _store_outcome(row, outcome)
            return True
    return False


def is_answered(row: ChangePoint) -> bool:
    """Return whether an earlier confirmation run confirms the change point.

    That run is around these commits, in the same case. Metrics shift together, and one confirmation
    run measures all of them. If it confirms the change point, that is stored.
    """
    for outcome in iterate_outcomes(row):
        if outcome.confirmation is Confirmation.CONFIRMED:
            row.run = outcome.run
            _store_outcome(row, outcome)
            return True
    return False


def iterate_outcomes(row: ChangePoint) -> Iterator[Outcome]:
    """Yield what the confirmation runs around the change point say about it, oldest first."""
    known = _load_runs_of_case(row)
    runs = [run for run in known if run.pk == row.run_id or _is_around(run, row)]
    skipped = max(0, len(runs) - MOST_READ)
    number = skipped + 1
    for run in runs[skipped:]:
        spending = get_confirmation_spending(number)
        comparison = read_confirmation_run(run, row.series, spending)
        if comparison is None or comparison.change is None:
            continue
        number += 1
        confirmation = judge_confirmation(comparison, detected=row.change, spending=spending)
        yield Outcome(run=run, comparison=comparison, spending=spending, confirmation=confirmation)


def _load_runs_of_case(row: ChangePoint) -> list[Run]:
    """Return the ended confirmation runs of the case on the host, oldest first."""
    trials = Trial.objects.filter(
        job__run=OuterRef("pk"), case=row.series.case_id, host=row.series.host_id
    )
    runs = Run.objects.filter(
        Exists(trials),
        definition__benchmark=row.series.benchmark_id,
        trigger=Trigger.CONFIRM,
        state__in=RUN_ENDED,
    )
    return list(runs.prefetch_related("variants__commit").order_by("created_at", "pk"))


def _is_around(run: Run, row: ChangePoint) -> bool:
    """Return whether the commits of the run are on both sides of the change."""
    variants = sorted(run.variants.all(), key=lambda variant: variant.position)
    first, last = (variant.commit for variant in variants)
    if (first.pk, last.pk) == (row.before_id, row.commit_id):
        return True
    before, after = row.before.position, row.commit.position
    if first.position is None or last.position is None or before is None or after is None:
        return False
    return first.position <= before and after <= last.position


def _store_outcome(row: ChangePoint, outcome: Outcome) -> None:
    comparison = outcome.comparison
    row.confirmed_change = comparison.change
    row.confirmed_low, row.confirmed_high = comparison.low, comparison.high
    row.confirmed_blocks = comparison.blocks
    row.confirmed_error = compute_standard_error(comparison)
    row.state = _STATES[outcome.confirmation]
    row.final = row.state == ChangeState.OPEN
    row.message = _describe_outcome(row, outcome)
    add_revision(row, row.message)
    row.save()


def _describe_outcome(row: ChangePoint, outcome: Outcome) -> str:
    comparison = outcome.comparison
    measured = f"{_format_interval(comparison)} in {comparison.blocks} blocks"
    match outcome.confirmation:
        case Confirmation.CONFIRMED:
            return f"confirmed: {measured}"
        case Confirmation.SMALL:
            return f"confirmed, but not beyond the margin: {measured}"
        case Confirmation.UNDECIDED:
            return f"not decided by a confirmation run: {measured}"
        case _ if _is_reversed(row, comparison):
            return f"refuted: the change is in the other direction, {measured}"
        case _:
            detected = format_change(row.change)
            return f"refuted: it is proven to be smaller than {detected}, {measured}"


def _is_reversed(row: ChangePoint, comparison: Comparison) -> bool:
    low, high = comparison.low or 0.0, comparison.high or 0.0
    return high < 0 if row.change > 0 else low > 0


def _format_interval(comparison: Comparison) -> str:
    change = format_change(comparison.change)
    if comparison.low is None or comparison.high is None:
        return change
    return f"{change} ({format_change(comparison.low)} to {format_change(comparison.high)})"
