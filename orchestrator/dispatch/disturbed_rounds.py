"""Rounds without a usable block, because other processes used the hosts: the job pauses."""

from collections import defaultdict
from collections.abc import Iterable

from cli.pitwall.units import format_duration
from orchestrator.loadtools.thresholds import NEIGHBOURS, THRESHOLDS
from orchestrator.runs.models import Job
from orchestrator.runs.quiet_wait import get_limit_s
from orchestrator.runs.states import COUNTED_VALIDITIES, TrialState

#: After this many disturbed rounds in a row a job pauses.
ROUNDS = 2
#: The duration of a pause, and how often a job pauses before it measures without a further one.
PAUSE_S = 600.0
MOST_PAUSES = 3
_BY_OTHERS = frozenset(code for code, rule in THRESHOLDS.items() if rule.cause == NEIGHBOURS)


def describe_pause(job: Job) -> str:
    """Return why the job should pause now; empty if it should not."""
    if not get_limit_s(job) or job.pauses >= MOST_PAUSES or job.round < ROUNDS:
        return ""
    last = range(job.round, job.round - ROUNDS, -1)
    if not all(_is_disturbed(job, each) for each in last):
        return ""
    host = job.host.name if job.host else "a host"
    return (
        f"Paused: the last {ROUNDS} rounds have no usable block, because other processes used "
        f"{host}. The job continues in {format_duration(PAUSE_S)}. Stop these programs, or measure "
        "now: then the job does not pause or wait again."
    )


def _is_disturbed(job: Job, number: int) -> bool:
    """Return whether a round has no usable block, and other processes are a reason."""
    trials = job.trials.filter(round=number, state=TrialState.MEASURED)
    usable: dict[int, list[bool]] = defaultdict(list)
    codes: set[str] = set()
    for case, validity, reasons in trials.values_list("case_id", "validity", "reasons"):
        usable[case].append(validity in COUNTED_VALIDITIES)
        codes |= _parse_codes(reasons)
    return bool(usable) and not any(map(all, usable.values())) and bool(codes & _BY_OTHERS)


def _parse_codes(reasons: Iterable[str] | None) -> set[str]:
    return {reason.partition(":")[0] for reason in reasons or ()}
