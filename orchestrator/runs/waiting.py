"""Why a queued job waits, in words for people."""

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import HELD, Host
from orchestrator.runs.models import HostLease, Job, Placement
from orchestrator.runs.states import JobState


def waiting_reason(job: Job) -> str:
    """One sentence; empty for a job that is not queued."""
    if job.state != JobState.QUEUED:
        return ""
    now = utc_now()
    if job.not_before is not None and job.not_before > now:
        return f"tried again in {(job.not_before - now).total_seconds():.0f} s"
    reasons = [_placement_waits(job, placement) for placement in job.placements.all()]
    return next((reason for reason in reasons if reason), "next in the queue of its hosts")


def _placement_waits(job: Job, placement: Placement) -> str:
    hosts = list(placement.candidates())
    usable = [host for host in hosts if host.state not in HELD]
    if not usable:
        return _none_usable(placement, hosts)
    open_now = [host for host in usable if _is_open(host, job.expected_s)]
    if not open_now:
        return f"{_names(usable)} closed until the open hours begin"
    busy = HostLease.objects.filter(host__in=open_now).count()
    if busy == len(open_now):
        return f"{_names(open_now)} busy with another job"
    return ""


def _none_usable(placement: Placement, hosts: list[Host]) -> str:
    if not hosts:
        return f"there is no host of {placement.wanted}"
    host = hosts[0]
    return f"{host.name} is {host.get_state_display().lower()}: {host.message or 'no reason given'}"


def _is_open(host: Host, for_s: float) -> bool:
    left = host.hours.seconds_left(utc_now(), host.timezone)
    return left is not None and left >= for_s


def _names(hosts: list[Host]) -> str:
    if len(hosts) == 1:
        return f"{hosts[0].name} is"
    return f"all {len(hosts)} hosts are"
