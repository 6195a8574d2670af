"""Apply the result of a confirmation run to a change point, also of another metric."""

from cli.pitwall.units import format_change
from orchestrator.regressions.change_points import add_revision
from orchestrator.regressions.confirmation_readings import read_confirmation_run
from orchestrator.results.models import ChangePoint, ChangeState
from orchestrator.runs.models import Run, Trigger
from orchestrator.runs.states import RUN_ENDED
from orchestrator.stats.comparison import Comparison, Verdict

#: The most earlier confirmation runs that are checked for an answer about another metric.
MOST_EARLIER = 10


def store_outcome(row: ChangePoint, outcome: Comparison) -> None:
    """Store the result of a confirmation run and the new state."""
    row.confirmed_change, row.confirmed_low, row.confirmed_high = (
        outcome.change,
        outcome.low,
        outcome.high,
    )
    row.state, row.message = _judge_outcome(row, outcome)
    row.final = row.state == ChangeState.OPEN
    add_revision(row, row.message)
    row.save()


def is_answered(row: ChangePoint) -> bool:
    """Return whether an earlier confirmation run confirms the change point.

    That run is around these commits, in the same case. Metrics shift together, and one confirmation
    run measures all of them. If it confirms the change point, that is stored.
    """
    others = ChangePoint.objects.filter(
        series__case=row.series.case_id,
        series__host=row.series.host_id,
        run__trigger=Trigger.CONFIRM,
        run__state__in=RUN_ENDED,
    ).exclude(pk=row.pk)
    for other in others.select_related("run").order_by("-pk")[:MOST_EARLIER]:
        outcome = _compare_around(row, other.run) if other.run is not None else None
        if outcome is not None and _judge_outcome(row, outcome)[0] == ChangeState.CONFIRMED:
            row.run = other.run
            store_outcome(row, outcome)
            return True
    return False


def _compare_around(row: ChangePoint, run: Run) -> Comparison | None:
    """Return a run's result for a change point; None if its commits are not on both sides of it."""
    first, last = (each.commit.position for each in run.variants.select_related("commit"))
    before, after = row.before.position, row.commit.position
    if first is None or last is None or before is None or after is None:
        return None
    return read_confirmation_run(run, row.series) if first <= before and after <= last else None


def _judge_outcome(row: ChangePoint, outcome: Comparison) -> tuple[str, str]:
    expected = Verdict.REGRESSED if row.regressed else Verdict.IMPROVED
    measured = f"{_format_interval(outcome)} in {outcome.blocks} blocks"
    match outcome.verdict:
        case verdict if verdict is expected:
            return ChangeState.CONFIRMED, f"confirmed: {measured}"
        case Verdict.INCONCLUSIVE:
            return ChangeState.OPEN, f"not decided by a confirmation run: {measured}"
        case Verdict.TRIVIAL:
            return ChangeState.REFUTED, f"refuted: smaller than the margin, {measured}"
        case Verdict.EQUIVALENT:
            return ChangeState.REFUTED, f"refuted: the two measure the same, {measured}"
        case _:
            return ChangeState.REFUTED, f"refuted: the change is in the other direction, {measured}"


def _format_interval(outcome: Comparison) -> str:
    change = format_change(outcome.change)
    if outcome.low is None or outcome.high is None:
        return change
    return f"{change} ({format_change(outcome.low)} to {format_change(outcome.high)})"
