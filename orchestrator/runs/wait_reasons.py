"""The reason why a queued job waits, as text for users."""

from uuid import UUID

from cli.pitwall.units import format_duration
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import HELD, Host, HostState
from orchestrator.fleet.reservations import describe_reservation, is_reserved
from orchestrator.runs.models import HostLease, Job, Placement
from orchestrator.runs.quiet_wait import PAUSED_PHASE
from orchestrator.runs.states import JobState


class Candidates:
    """The hosts that placements may use, and which are busy; each is queried once."""

    def __init__(self) -> None:
        self._hosts: dict[str, list[Host]] = {}
        self._leases: dict[frozenset[UUID], list[UUID]] = {}

    def hosts(self, placement: Placement) -> list[Host]:
        """Return the hosts of a placement; all placements are of one team."""
        if placement.wanted_host is not None:
            return [placement.wanted_host]
        if placement.host_selector not in self._hosts:
            self._hosts[placement.host_selector] = list(placement.candidates())
        return self._hosts[placement.host_selector]

    def busy(self, hosts: list[Host], job: Job) -> int:
        """Return how many hosts have a lease of another job."""
        key = frozenset(host.pk for host in hosts)
        if key not in self._leases:
            leases = HostLease.objects.filter(host__in=key)
            self._leases[key] = list(leases.values_list("job_id", flat=True))
        # The job may have been leased since it was read.
        return sum(holder != job.pk for holder in self._leases[key])


def describe_wait(job: Job, known: Candidates | None = None) -> str:
    """Return one sentence; empty for a job that is not queued. `known`: shared by several jobs."""
    if job.state != JobState.QUEUED:
        return ""
    now = utc_now()
    if job.not_before is not None and job.not_before > now:
        verb = "continues" if job.phase == PAUSED_PHASE else "tried again"
        return f"{verb} in {format_duration((job.not_before - now).total_seconds())}"
    known = known or Candidates()
    reasons = [
        _describe_placement_wait(job, placement, known) for placement in job.placements.all()
    ]
    return next((reason for reason in reasons if reason), "in the queue of its hosts")


def _describe_placement_wait(job: Job, placement: Placement, known: Candidates) -> str:
    hosts = known.hosts(placement)
    usable = [host for host in hosts if host.state not in HELD]
    if not usable:
        return _explain_none_usable(placement, hosts)
    present = [host for host in usable if host.state != HostState.UNREACHABLE]
    if not present:
        return _explain_absence(usable)
    open_now = [host for host in present if _is_open(host, job.expected_s)]
    if not open_now:
        return f"{_format_names(present)} closed until the open hours begin"
    free = [host for host in open_now if not is_reserved(host)]
    if not free:
        return describe_reservation(open_now[0])
    if known.busy(free, job) == len(free):
        return f"{_format_names(free)} busy with another job"
    return ""


def _explain_none_usable(placement: Placement, hosts: list[Host]) -> str:
    if not hosts:
        return f"there is no host of {placement.host_selector}"
    host = hosts[0]
    return f"{host.name} is {host.get_state_display().lower()}: {host.message or 'no reason given'}"


def _explain_absence(hosts: list[Host]) -> str:
    """Return since when the host has not answered, and the error of its last probe."""
    if len(hosts) > 1:
        return f"none of the {len(hosts)} hosts answers; they are tried again"
    host = hosts[0]
    since = f" since {host.unreachable_since:%Y-%m-%d %H:%M} UTC" if host.unreachable_since else ""
    return f"{host.name} has not answered{since}, and is tried again: {host.message}"


def _is_open(host: Host, for_s: float) -> bool:
    left = host.hours.seconds_left(utc_now(), host.timezone)
    return left is not None and left >= for_s


def _format_names(hosts: list[Host]) -> str:
    if len(hosts) == 1:
        return f"{hosts[0].name} is"
    return f"all {len(hosts)} hosts are"
