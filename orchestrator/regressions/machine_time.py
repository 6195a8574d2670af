"""The daily machine time for Pitwall's own runs in a project."""

from datetime import datetime, timedelta

from django.db.models import F, Sum
from django.db.models.functions import Coalesce

from orchestrator.benchmarks.models import Project
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Job, Run, Trigger
from orchestrator.runs.states import RUN_ENDED

OWN_TRIGGERS = (Trigger.CONFIRM, Trigger.BISECT)


def sum_used_s(project: Project, now: datetime) -> float:
    """Return the machine time in seconds of confirmations and bisections since midnight (UTC)."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    jobs = Job.objects.filter(
        run__definition__benchmark__project=project,
        run__trigger__in=OWN_TRIGGERS,
        started_at__gte=midnight,
    )
    taken = jobs.aggregate(taken=Sum(Coalesce(F("ended_at"), now) - F("started_at")))["taken"]
    return (taken or timedelta()).total_seconds()


def compute_left_s(project: Project, now: datetime) -> float:
    return project.machine_minutes_a_day * 60 - sum_used_s(project, now)


def is_at_it(host: Host) -> bool:
    """Return whether one of Pitwall's own runs is queued or running on the host.

    There is one at a time, so that runs of members find a place in between.
    """
    runs = Run.objects.filter(trigger__in=OWN_TRIGGERS, jobs__placements__wanted_host=host)
    return runs.exclude(state__in=RUN_ENDED).exists()
