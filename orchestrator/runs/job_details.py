"""Details of jobs for display: hosts by role, builds, and why they wait."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Prefetch, QuerySet, prefetch_related_objects
from django.db.models.functions import Length, Right

from orchestrator.accounts.members import Member
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import NotFoundError
from orchestrator.runs.models import Build, HostRole, Job, Placement
from orchestrator.runs.states import JobState
from orchestrator.runs.wait_reasons import Candidates, describe_wait

#: How much of a build log is read to show its last lines.
TAIL_CHARS = 2_000
ROLES = tuple(HostRole.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """`placements` with the target first; `builds` have `tail` and `log_chars` in place of `log`.

    `waiting` is the reason why a queued job does not start; empty for other jobs, and for one that
    waits until `not_before`.
    """

    placements: tuple[Placement, ...]
    builds: tuple[Build, ...]
    waiting: str


def load_job_details(jobs: Sequence[Job]) -> dict[UUID, JobDetails]:
    """Return the details of these jobs by their ids, in a fixed number of queries.

    Fills `placements` of the jobs as a prefetch does.
    """
    places = Placement.objects.select_related("host", "wanted_host", "wanted_profile")
    prefetch_related_objects(list(jobs), Prefetch("placements", queryset=places))
    builds: dict[UUID, list[Build]] = defaultdict(list)
    for build in _load_builds().filter(job__in=jobs):
        builds[build.job_id].append(build)
    reasons: dict[object, str] = {}
    hosts = Candidates()
    return {
        job.pk: JobDetails(
            placements=tuple(sorted(job.placements.all(), key=lambda row: ROLES.index(row.role))),
            builds=tuple(builds[job.pk]),
            waiting=_describe_waiting(job, reasons, hosts),
        )
        for job in jobs
    }


def _describe_waiting(job: Job, known: dict[object, str], hosts: Candidates) -> str:
    """Return why a job waits; `known` caches the reasons of jobs with the same placements."""
    if job.state != JobState.QUEUED or (job.not_before and job.not_before > utc_now()):
        return ""
    key = (
        job.expected_s,
        *sorted((row.role, row.host_selector, str(row.avoid)) for row in job.placements.all()),
    )
    if key not in known:
        known[key] = describe_wait(job, hosts)
    return known[key]


def build_for(member: Member, build_id: int) -> Build:
    """Return a build of the member's team, with its whole log."""
    builds = Build.objects.select_related("host", "commit", "job__run__definition__benchmark")
    seen = member.sees("job__run__definition__benchmark__project", team="job__run__team")
    build = builds.filter(seen, pk=build_id).first()
    if build is None:
        raise NotFoundError.build_for_team("build")
    return build


def _load_builds() -> QuerySet[Build]:
    return (
        Build.objects.select_related("host", "commit")
        .defer("log")
        .annotate(tail=Right("log", TAIL_CHARS), log_chars=Length("log"))
        .order_by("started_at", "pk")
    )
