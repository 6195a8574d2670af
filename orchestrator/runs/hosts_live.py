"""The live progress of a run per host: its jobs, the current one, and the time left."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.fleet.models import Host
from orchestrator.runs.grid import describe_request, get_host_key
from orchestrator.runs.selectors import JobProgress, SecondsLeft
from orchestrator.runs.states import JOB_ENDED, JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProgress:
    """All jobs of a run on one host; `host` is None while they wait for the same kind of host."""

    host: Host | None
    parts: tuple[JobProgress, ...]

    @property
    def active(self) -> JobProgress | None:
        return next((each for each in self.parts if each.is_active), None)

    @property
    def current_part(self) -> JobProgress:
        """Return the current job, else the next one, else the last one."""
        waiting = (each for each in self.parts if each.job.state not in JOB_ENDED)
        return self.active or next(waiting, self.parts[-1])

    @property
    def title(self) -> str:
        return self.host.name if self.host else describe_request(self.parts[0].job)

    @property
    def others(self) -> list[JobProgress]:
        return [each for each in self.parts if each is not self.current_part]

    @property
    def state(self) -> str:
        if self.active is not None:
            return str(self.active.job.state)
        states = {str(each.job.state) for each in self.parts}
        if JobState.QUEUED in states:
            return str(JobState.QUEUED)
        if JobState.FAILED in states:
            return str(JobState.FAILED)
        if JobState.FINISHED in states:
            return str(JobState.FINISHED)
        return str(JobState.NO_DATA if JobState.NO_DATA in states else JobState.CANCELLED)

    @property
    def trials_total(self) -> int:
        return sum(each.trials_total for each in self.parts)

    @property
    def trials_finished(self) -> int:
        return sum(each.trials_finished for each in self.parts)

    @property
    def trials_failed(self) -> int:
        return sum(each.trials_failed for each in self.parts)

    @property
    def left_s(self) -> float | None:
        """Return the seconds left of all its jobs, which run in sequence; None if they have
        ended."""
        left: list[SecondsLeft] = [each.left for each in self.parts if each.left is not None]
        return sum(each.typical for each in left) if left else None


def build_host_progress(parts: Iterable[JobProgress]) -> list[HostProgress]:
    """Group the jobs by host, in the order of the hosts of the run."""
    groups: dict[object, list[JobProgress]] = {}
    for part in parts:
        groups.setdefault(get_host_key(part.job), []).append(part)
    return [HostProgress(host=each[0].job.host, parts=tuple(each)) for each in groups.values()]
