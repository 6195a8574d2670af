"""Trying a host step by step: from its port to how quiet it is, with what mends each failure."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from uuid import UUID

from django.conf import settings

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.core.errors import ConflictError, HostError
from orchestrator.dispatch import checkup_inside, mending
from orchestrator.fleet.checks import CheckList, Finding, begin_again, checks_of, note_check
from orchestrator.fleet.models import CheckOutcome, CheckStep, Host, HostState
from orchestrator.fleet.selectors import own_host_for
from orchestrator.transport.address import HostKey
from orchestrator.transport.reach import reach
from orchestrator.transport.ssh import scan_host_key

REACH_TIMEOUT_S = 6.0


def check_next(*, member: Member, host_id: UUID, again: CheckStep | None = None) -> CheckList:
    """Tries the next step, or `again` and so all after it; what came out is kept.

    Nothing is tried where a step before it waits for somebody, or all are through.
    """
    host = _host(member, host_id)
    if again is not None:
        begin_again(host=host, step=again)
    checks = checks_of(host)
    step = checks.next_step
    if step is None:
        return checks
    began = time.monotonic()
    finding = _found(host, step)
    return note_check(host=host, step=step, finding=finding, seconds=time.monotonic() - began)


def check_all(*, member: Member, host_id: UUID, again: CheckStep | None = None) -> CheckList:
    """The same until something waits for somebody, or all are through."""
    checks = check_next(member=member, host_id=host_id, again=again)
    while checks.next_step is not None:
        checks = check_next(member=member, host_id=host_id)
    return checks


def _host(member: Member, host_id: UUID) -> Host:
    member.require(Role.MAINTAINER, to="check a host")
    host = own_host_for(member, host_id)
    if host.state == HostState.DISABLED:
        raise ConflictError(f"{host} is retired: take it back first")
    if hasattr(host, "lease"):
        raise ConflictError(
            f"a job runs on {host}: checks would disturb it; wait until it has ended"
        )
    return host


def _found(host: Host, step: CheckStep) -> Finding:
    try:
        return _STEPS[step](host)
    except HostError as error:
        return Finding(
            outcome=CheckOutcome.FAILED,
            message=str(error),
            remedies=mending.remedies_of(host, step, error),
        )


def _reach(host: Host) -> Finding:
    found = reach(host.address, host.port, REACH_TIMEOUT_S, networks=settings.HOST_NETWORKS)
    named = "" if found.ip == host.address else f" ({found.ip})"
    return Finding(
        outcome=CheckOutcome.PASSED,
        message=f"{host.address}{named} answers on port {host.port}: {found.server}",
    )


def _key(host: Host) -> Finding:
    shown = scan_host_key(host.address, host.port, REACH_TIMEOUT_S, networks=settings.HOST_NETWORKS)
    if shown.line == host.host_key:
        message = f"It shows the key that is pinned: {shown.fingerprint_sha256} ({shown.type})"
        return Finding(outcome=CheckOutcome.PASSED, message=message)
    return Finding(
        outcome=CheckOutcome.ASKS,
        message=_question(host, shown),
        remedies=mending.to_compare_keys(shown),
        shown_key=shown.line,
    )


def _question(host: Host, shown: HostKey) -> str:
    if not host.host_key:
        return f"{host.address} shows a key that nobody has confirmed yet."
    pinned = HostKey.parse(host.host_key).fingerprint_sha256
    return (
        f"{host.address} shows another key than the pinned one ({pinned}). The host was set up "
        "anew, or another machine answers at its address: pin it only if you know why it changed."
    )


_STEPS: Mapping[CheckStep, Callable[[Host], Finding]] = MappingProxyType(
    {CheckStep.REACH: _reach, CheckStep.KEY: _key, **checkup_inside.STEPS}
)
