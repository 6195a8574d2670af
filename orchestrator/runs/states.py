"""The states of runs, jobs and trials, and the allowed transitions. No Django."""

from enum import StrEnum


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    # It ended without failure, but no trial counts: all are invalid, skipped or unsupported.
    NO_DATA = "no_data"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobState(StrEnum):
    QUEUED = "queued"
    PREPARING = "preparing"
    MEASURING = "measuring"
    FINISHED = "finished"
    # As for runs.
    NO_DATA = "no_data"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TrialState(StrEnum):
    PLANNED = "planned"
    MEASURED = "measured"
    FAILED = "failed"
    SKIPPED = "skipped"
    # The case was decided without this trial.
    NOT_NEEDED = "not needed"
    # Its hosts lack something that it needs, or the definition says that it is unsupported.
    UNSUPPORTED = "unsupported"


class BuildState(StrEnum):
    BUILDING = "building"
    DONE = "done"
    FAILED = "failed"


class Validity(StrEnum):
    VALID = "valid"
    SUSPECT = "suspect"
    INVALID = "invalid"


#: Trials that are included in statistics.
COUNTED_VALIDITIES = (Validity.VALID, Validity.SUSPECT)


def is_counted(state: str, validity: str) -> bool:
    """Return whether statistics include a trial with this state and validity."""
    return state == TrialState.MEASURED and validity in COUNTED_VALIDITIES


RUN_ENDED = frozenset({RunState.FINISHED, RunState.NO_DATA, RunState.FAILED, RunState.CANCELLED})
#: All trials of the job have ended; nothing failed and nobody cancelled it.
JOB_COMPLETED = frozenset({JobState.FINISHED, JobState.NO_DATA})
JOB_ENDED = JOB_COMPLETED | {JobState.FAILED, JobState.CANCELLED}
JOB_ACTIVE = frozenset({JobState.PREPARING, JobState.MEASURING})

JOB_TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.PREPARING, JobState.CANCELLED, JobState.FAILED}),
    # Back to the queue after a failure of the host: the next attempt may use another one.
    JobState.PREPARING: frozenset(
        {JobState.MEASURING, JobState.QUEUED, JobState.FAILED, JobState.CANCELLED}
    ),
    JobState.MEASURING: frozenset(
        {*JOB_COMPLETED, JobState.QUEUED, JobState.FAILED, JobState.CANCELLED}
    ),
    JobState.FINISHED: frozenset(),
    JobState.NO_DATA: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}


def derive_run_state(jobs: list[JobState], *, cancelled: bool) -> RunState:
    """Derive the state of a run from the states of its jobs (at least one).

    After all jobs have ended, the first rule that applies decides. The run is cancelled if it was
    cancelled or all jobs were. It failed if a job failed. It finished if a job did. Otherwise it
    has no usable data.
    """
    if all(state == JobState.QUEUED for state in jobs):
        return RunState.QUEUED
    if not all(state in JOB_ENDED for state in jobs):
        return RunState.RUNNING
    if cancelled or all(state == JobState.CANCELLED for state in jobs):
        return RunState.CANCELLED
    if JobState.FAILED in jobs:
        return RunState.FAILED
    return RunState.FINISHED if JobState.FINISHED in jobs else RunState.NO_DATA


def describe_run_state(state: str) -> str:
    """Return a clause about a run, such as `the run failed`. All texts about ended runs use it."""
    return f"the run {_CLAUSES[RunState(state)]}"


_CLAUSES = {
    RunState.QUEUED: "is queued",
    RunState.RUNNING: "is running",
    RunState.FINISHED: "finished",
    RunState.NO_DATA: "has no usable data",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "was cancelled",
}
