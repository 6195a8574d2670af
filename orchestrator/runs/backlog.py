"""The backlog: queued jobs per host, and queued machine time per team."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from django.db.models import Sum

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Team
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Job, Placement
from orchestrator.runs.states import JobState


def queued_by_host(member: Member, hosts: Sequence[Host]) -> Counter[UUID]:
    """Count the queued jobs of each host; a job for a profile or a tag counts for all its hosts."""
    waiting = Placement.objects.filter(
        job__state=JobState.QUEUED, job__run__team=member.team
    ).values_list("job_id", "wanted_host_id", "wanted_profile_id", "wanted_tag", "avoid")
    pairs = {
        (job_id, host.pk)
        for job_id, wanted_host, profile, tag, avoid in waiting
        for host in hosts
        if host.pk not in avoid
        and (host.pk == wanted_host or host.profile_id == profile or (tag and tag in host.tags))
    }
    return Counter(host_id for _, host_id in pairs)


def sum_queued_seconds(team: Team) -> float:
    """Return the expected machine seconds of a team's queued jobs."""
    jobs = Job.objects.filter(run__team=team, state=JobState.QUEUED)
    return float(jobs.aggregate(total=Sum("expected_s"))["total"] or 0.0)
