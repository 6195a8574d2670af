"""End conditions of a run other than its number of rounds: decided cases, or the budget."""

from cli.pitwall.units import format_duration
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.models import Until
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.stopping import BlocksLeft, blocks_left

#: The maximum rounds of a run that continues until decided: there is no analysis after these.
ROUNDS_AT_MOST = INTERIM_BLOCKS[-1]


def parse_until(name: str, *, alone: bool) -> Until:
    """Parse `until` of a request; `alone`: one commit is measured, so nothing can be decided."""
    try:
        until = Until(name)
    except ValueError as error:
        known = ", ".join(Until.values)
        raise InvalidRequestError(
            f"expected one of {known}, got {name!r}", field="until"
        ) from error
    if alone and until != Until.ROUNDS:
        raise InvalidRequestError(
            "one commit alone has nothing to decide: name a contender, or ask for a number of "
            "rounds",
            field="until",
        )
    return until


def resolve_rounds(until: Until, asked: int | None, defined: int) -> int:
    """Return the maximum number of rounds: the requested one, or the default."""
    if asked is not None:
        check_rounds(until, asked)
        return asked
    return defined if until == Until.ROUNDS else ROUNDS_AT_MOST


def check_rounds(until: Until, asked: int | None) -> None:
    if asked is None:
        return
    if until == Until.ROUNDS:
        if not 1 <= asked <= MAX_ROUNDS:
            raise InvalidRequestError(f"expected 1 to {MAX_ROUNDS} rounds", field="rounds")
    elif not FEWEST_BLOCKS <= asked <= ROUNDS_AT_MOST:
        raise InvalidRequestError(
            f"until decided takes at least {FEWEST_BLOCKS} rounds and at most {ROUNDS_AT_MOST}, "
            f"got {asked}",
            field="rounds",
        )


def blocks_of(until: Until, rounds: int) -> BlocksLeft:
    """Return how many blocks each case of a new run takes."""
    if until == Until.ROUNDS:
        return BlocksLeft(least=rounds, typical=rounds, most=rounds)
    return blocks_left(done=0, analysed_at=0, most=rounds, needed=None)


def check_budget(budget_s: float | None, round_s: float = 0.0) -> None:
    """Check a budget; `round_s`: machine seconds of one round of all cases on all hosts, if
    known."""
    if budget_s is None:
        return
    if not 0 < budget_s < float("inf"):
        raise InvalidRequestError("expected a budget above 0", field="budget_s")
    if budget_s < round_s:
        raise InvalidRequestError(
            f"a budget of {format_duration(budget_s)} is too small for one round, which takes "
            f"{format_duration(round_s)} of machine time",
            field="budget_s",
        )


def budget_warning(budget_s: float | None, round_s: float, rounds: int, *, alone: bool) -> str:
    """Return a warning if the budget is too small for a verdict; empty otherwise."""
    least = min(rounds, FEWEST_BLOCKS)
    if alone or budget_s is None or budget_s >= least * round_s:
        return ""
    return (
        f"the budget of {format_duration(budget_s)} is too small for the {least} rounds that a "
        f"verdict needs: {format_duration(least * round_s)} of machine time"
    )
