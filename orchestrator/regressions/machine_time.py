"""What Pitwall may do by itself in a project each day, and what of it is left."""

from datetime import datetime, timedelta

from django.db.models import F, Sum
from django.db.models.functions import Coalesce

from orchestrator.benchmarks.models import Project
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Job, Run, Trigger
from orchestrator.runs.states import RUN_ENDED

OWN_TRIGGERS = (Trigger.CONFIRM, Trigger.BISECT)


def used_s(project: Project, now: datetime) -> float:
    """Seconds of machine time that confirming and searching took since midnight (UTC)."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    jobs = Job.objects.filter(
        run__definition__benchmark__project=project,
        run__trigger__in=OWN_TRIGGERS,
        started_at__gte=midnight,
    )
    taken = jobs.aggregate(taken=Sum(Coalesce(F("ended_at"), now) - F("started_at")))["taken"]
    return (taken or timedelta()).total_seconds()


def left_s(project: Project, now: datetime) -> float:
    return project.machine_minutes_a_day * 60 - used_s(project, now)


def is_at_it(host: Host) -> bool:
    """Whether a run that Pitwall began by itself is queued or under way on the host: one at a
    time, so that people's runs find their place between."""
    runs = Run.objects.filter(trigger__in=OWN_TRIGGERS, jobs__placements__wanted_host=host)
    return runs.exclude(state__in=RUN_ENDED).exists()
