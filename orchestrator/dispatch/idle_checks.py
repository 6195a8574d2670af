"""Idle checks before a run: whether other processes use its hosts now, and which."""

from collections.abc import Sequence
from dataclasses import dataclass
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
#: A page waits this long for a worker.
PATIENCE = timedelta(seconds=20)
#: The hosts of one plan that are checked.
MOST_HOSTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class HostIdleness:
    """`check` is the last result, None before the first one. `running`: a new one is due soon."""

    host: Host
    check: HostCheck | None
    running: bool

    @property
    def is_busy(self) -> bool:
        return self.check is not None and self.check.outcome == CheckOutcome.WARNING

    @property
    def has_failed(self) -> bool:
        return self.check is not None and self.check.outcome == CheckOutcome.FAILED


def refresh_idle_checks(plan: RunPlan) -> list[HostIdleness]:
    """Return the newest idle check of each free host of a plan; request those that are too old."""
    now = utc_now()
    hosts = _list_free_hosts(plan)
    checks = {
        check.host_id: check
        for check in HostCheck.objects.filter(host__in=hosts, step=CheckStep.QUIET)
    }
    requests = dict(
        CheckRequest.objects.filter(host__in=hosts).values_list("host_id", "requested_at")
    )
    return [
        _refresh_idle_check(host, checks.get(host.pk), requests.get(host.pk), now) for host in hosts
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


def _refresh_idle_check(
    host: Host, check: HostCheck | None, requested_at: datetime | None, now: datetime
) -> HostIdleness:
    if check is not None and now - check.at < FRESH:
        return HostIdleness(host=host, check=check, running=False)
    if requested_at is None:
        request_idle_check(host)
        wake_check(host.pk)
    waited = now - (requested_at or now)
    return HostIdleness(host=host, check=check, running=waited < PATIENCE)
