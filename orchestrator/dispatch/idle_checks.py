"""Idle checks before a run: whether other processes use its hosts now, and which."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from orchestrator.core.clock import utc_now
from orchestrator.dispatch.wakeups import wake_check
from orchestrator.fleet.check_requests import request_idle_check
from orchestrator.fleet.models import (
    CheckOutcome,
    CheckRequest,
    CheckStep,
    Host,
    HostCheck,
    HostState,
)
from orchestrator.runs.models import HostLease
from orchestrator.runs.plans import RunPlan

#: A result is shown for this long before the next check.
FRESH = timedelta(seconds=60)
#: A page waits this long for a worker, which may have to start first.
PATIENCE = timedelta(seconds=60)
#: The hosts of one plan that are checked.
MOST_HOSTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class HostIdleness:
    """The last idle check of a host, if any, and when another one was requested."""

    host: Host
    check: HostCheck | None
    requested_at: datetime | None

    @property
    def is_busy(self) -> bool:
        return self.check is not None and self.check.outcome == CheckOutcome.WARNING

    @property
    def has_failed(self) -> bool:
        return self.check is not None and self.check.outcome == CheckOutcome.FAILED

    @property
    def is_running(self) -> bool:
        """A worker should have the result soon."""
        return self.requested_at is not None and utc_now() - self.requested_at < PATIENCE

    @property
    def is_late(self) -> bool:
        return self.requested_at is not None and not self.is_running


def refresh_idle_checks(plan: RunPlan) -> list[HostIdleness]:
    """Return the newest idle check of each free host of a plan; request those that are too old."""
    return [_request_new_check(each) for each in load_idle_checks(_list_free_hosts(plan))]


def load_idle_checks(hosts: Sequence[Host]) -> list[HostIdleness]:
    """Return the newest idle check of each host, and whether another one is requested."""
    checks = {
        check.host_id: check
        for check in HostCheck.objects.filter(host__in=hosts, step=CheckStep.QUIET)
    }
    requests = dict(
        CheckRequest.objects.filter(host__in=hosts).values_list("host_id", "requested_at")
    )
    return [
        HostIdleness(host=host, check=checks.get(host.pk), requested_at=requests.get(host.pk))
        for host in hosts
    ]


def _list_free_hosts(plan: RunPlan) -> Sequence[Host]:
    named = {
        one.host.pk: one.host
        for roles in plan.placements
        for one in roles.values()
        if one.host is not None and one.host.state == HostState.READY
    }
    leased = set(HostLease.objects.filter(host__in=named).values_list("host_id", flat=True))
    return [host for pk, host in named.items() if pk not in leased][:MOST_HOSTS]


def _request_new_check(idleness: HostIdleness) -> HostIdleness:
    now = utc_now()
    if idleness.requested_at is not None:
        return idleness
    if idleness.check is not None and now - idleness.check.at < FRESH:
        return idleness
    request_idle_check(idleness.host)
    wake_check(idleness.host.pk)
    return replace(idleness, requested_at=now)
