"""The states of runs, jobs and trials, and which may follow which. No Django."""

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
    # Its case was decided without it.
    NOT_NEEDED = "not needed"
    # Its hosts lack something that it needs, or the definition says that it cannot be had.
    UNSUPPORTED = "unsupported"


class BuildState(StrEnum):
    BUILDING = "building"
    DONE = "done"
    FAILED = "failed"


class Validity(StrEnum):
    VALID = "valid"
    SUSPECT = "suspect"
    INVALID = "invalid"


#: Trials that count in statistics.
COUNTED_VALIDITIES = (Validity.VALID, Validity.SUSPECT)

RUN_ENDED = frozenset({RunState.FINISHED, RunState.FAILED, RunState.CANCELLED})
JOB_ENDED = frozenset({JobState.FINISHED, JobState.FAILED, JobState.CANCELLED})
JOB_ACTIVE = frozenset({JobState.PREPARING, JobState.MEASURING})

JOB_TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.PREPARING, JobState.CANCELLED, JobState.FAILED}),
    # Back to the queue: the host is to blame, and the job is tried again, on another one if it may.
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
    """The state of a run that follows from the states of its jobs (at least one).

    A run whose jobs have all ended is cancelled if it was, or all of them were; failed if any of
    them failed, and else finished.
    """
    if all(state == JobState.QUEUED for state in jobs):
        return RunState.QUEUED
    if not all(state in JOB_ENDED for state in jobs):
        return RunState.RUNNING
    if cancelled or all(state == JobState.CANCELLED for state in jobs):
        return RunState.CANCELLED
    return RunState.FAILED if JobState.FAILED in jobs else RunState.FINISHED
