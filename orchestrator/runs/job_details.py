"""What is shown of jobs beside their progress: hosts by role, builds, and why they wait."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Length, Right

from orchestrator.accounts.members import Member
from orchestrator.core.errors import NotFoundError
from orchestrator.runs import selectors
from orchestrator.runs.models import Build, HostRole, Job, Placement
from orchestrator.runs.states import JobState

#: Of a build's log, so much is read to show its last lines.
TAIL_CHARS = 2_000
ROLES = tuple(HostRole.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """`placements` with the target first; `builds` carry `tail` and `log_chars` in place of `log`.

    `waiting` says why a queued job does not start; empty for other jobs.
    """

    placements: tuple[Placement, ...]
    builds: tuple[Build, ...]
    waiting: str


def details_of(jobs: Sequence[Job]) -> dict[UUID, JobDetails]:
    """The details of these jobs by their ids, in a few queries whatever their number."""
    placements: dict[UUID, list[Placement]] = defaultdict(list)
    rows = Placement.objects.filter(job__in=jobs)
    for row in rows.select_related("host", "wanted_host", "wanted_profile"):
        placements[row.job_id].append(row)
    builds: dict[UUID, list[Build]] = defaultdict(list)
    for build in _builds().filter(job__in=jobs):
        builds[build.job_id].append(build)
    return {
        job.pk: JobDetails(
            placements=tuple(sorted(placements[job.pk], key=lambda row: ROLES.index(row.role))),
            builds=tuple(builds[job.pk]),
            waiting=waiting_reason(job) if job.state == JobState.QUEUED else "",
        )
        for job in jobs
    }


def waiting_reason(job: Job) -> str:
    ask = getattr(selectors, "waiting_reason", None)
    return ask(job) if ask else ""


def build_for(member: Member, build_id: int) -> Build:
    """A build of the member's team, with its whole log."""
    builds = Build.objects.select_related("host", "commit", "job__run__definition__benchmark")
    build = builds.filter(pk=build_id, job__run__team=member.team).first()
    if build is None:
        raise NotFoundError("there is no such build in this team")
    return build


def _builds() -> QuerySet[Build]:
    return (
        Build.objects.select_related("host", "commit")
        .defer("log")
        .annotate(tail=Right("log", TAIL_CHARS), log_chars=Length("log"))
        .order_by("started_at", "pk")
    )
