"""When the host of a running round is polled next.

Each poll starts a program on the host, which disturbs the load of a trial there.
"""

from collections.abc import Mapping
from typing import Any

from agents.hostagent.protocol import POLL_S, compute_build_poll_s
from orchestrator.core.clock import utc_now
from orchestrator.runs.models import Job
from orchestrator.runs.quiet_wait import WAITING_PHASE
from orchestrator.runs.states import TrialState

#: The longest time between two polls of a host that does not ask for quiet, except in builds: the
#: results of a trial are read between two loads.
LONGEST_POLL_S = 1.0
#: The same in a trial that takes longer than planned, such as a number of requests to a slow
#: server. A poll each second would use a tenth of a core during its load.
LONGEST_OVERDUE_POLL_S = 10.0
#: The first trial of a round is shown while it runs if its case took longer in the round before.
LONG_TRIAL_S = 10.0
#: From the start of the agent to the start of the first trial, if there is nothing to build.
AGENT_START_S = 0.5


def compute_first_poll_s(job: Job) -> float:
    """Return the seconds until the first poll of a round that has just started.

    It is the expected end of the first trial. An earlier poll would come at the beginning of the
    load: the agent asks for quiet only when it is polled.
    """
    first = job.trials.filter(state=TrialState.PLANNED, round=job.round).first()
    if first is None:
        return POLL_S
    measured = job.trials.filter(state=TrialState.MEASURED, round__lt=job.round)
    earlier = measured.filter(case=first.case_id).last()
    if earlier is None or earlier.started_at is None or earlier.ended_at is None:
        return POLL_S
    took_s = (earlier.ended_at - earlier.started_at).total_seconds()
    return AGENT_START_S + took_s if 0 <= took_s <= LONG_TRIAL_S else POLL_S


def compute_poll_pause_s(job: Job, status: Mapping[str, Any]) -> float:
    """Return the seconds until the next poll, if the agent does not ask for quiet."""
    pause_s = compute_build_poll_s(float(status.get("idle_s") or 0.0))
    if job.phase.startswith("building"):
        return pause_s
    return max(min(LONGEST_POLL_S, pause_s), min(LONGEST_OVERDUE_POLL_S, _compute_overdue_s(job)))


def _compute_overdue_s(job: Job) -> float:
    """Return for how many seconds the current trial has lasted longer than planned, at least 0."""
    if job.current_trial is None or job.phase == WAITING_PHASE:
        return 0.0
    trial = job.trials.filter(pk=job.current_trial, state=TrialState.PLANNED).first()
    if trial is None or trial.started_at is None:
        return 0.0
    return max(0.0, (utc_now() - trial.started_at).total_seconds() - trial.expected_s)
