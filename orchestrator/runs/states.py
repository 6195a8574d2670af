"""The states of runs, jobs and trials, and the allowed transitions. No Django."""

from enum import StrEnum


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobState(StrEnum):
    QUEUED = "queued"
    PREPARING = "preparing"
    MEASURING = "measuring"
    FINISHED = "finished"
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

RUN_ENDED = frozenset({RunState.FINISHED, RunState.FAILED, RunState.CANCELLED})
JOB_ENDED = frozenset({JobState.FINISHED, JobState.FAILED, JobState.CANCELLED})
JOB_ACTIVE = frozenset({JobState.PREPARING, JobState.MEASURING})

JOB_TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.PREPARING, JobState.CANCELLED, JobState.FAILED}),
    # Back to the queue after a failure of the host: the next attempt may use another one.
    JobState.PREPARING: frozenset(
        {JobState.MEASURING, JobState.QUEUED, JobState.FAILED, JobState.CANCELLED}
    ),
    JobState.MEASURING: frozenset(
        {JobState.FINISHED, JobState.QUEUED, JobState.FAILED, JobState.CANCELLED}
    ),
    JobState.FINISHED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}


def derive_run_state(jobs: list[JobState], *, cancelled: bool) -> RunState:
    """Derive the state of a run from the states of its jobs (at least one).

    After all jobs have ended, the run is cancelled if it was cancelled or all jobs were; failed if
    any job failed; otherwise finished.
    """
    if all(state == JobState.QUEUED for state in jobs):
        return RunState.QUEUED
    if not all(state in JOB_ENDED for state in jobs):
        return RunState.RUNNING
    if cancelled or all(state == JobState.CANCELLED for state in jobs):
        return RunState.CANCELLED
    return RunState.FAILED if JobState.FAILED in jobs else RunState.FINISHED
