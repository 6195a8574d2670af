"""Checks of a host step by step, from its port to its idle load, with a fix for each failure."""

import logging
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.core.errors import ConflictError, HostError, LoginRefusedError
from orchestrator.core.heartbeat import HEARTBEAT, Claim, ClaimLost
from orchestrator.dispatch import checkup_inside, remediation
from orchestrator.dispatch.shares import SHARES
from orchestrator.dispatch.wakeups import wake_check
from orchestrator.fleet.check_requests import (
    build_request_claim,
    claim_request,
    end_request,
    record_progress,
    request_check,
)
from orchestrator.fleet.checks import CheckList, Finding, begin_again, load_checks, record_check
from orchestrator.fleet.connect import list_jumps, load_jump_key
from orchestrator.fleet.models import CheckOutcome, CheckRequest, CheckStep, Host, HostState
from orchestrator.fleet.selectors import load_own_host
from orchestrator.transport.address import HostKey
from orchestrator.transport.reach import reach_ssh_server
from orchestrator.transport.ssh import scan_host_key

logger = logging.getLogger(__name__)

REACH_TIMEOUT_S = 6.0
#: The time limit of a step in seconds; then its connections are closed.
STEP_S = 90.0
#: A step fails after this many workers have died during it.
MAX_TRIES = 3
_DIED = Finding(
    outcome=CheckOutcome.FAILED,
    message=f"{MAX_TRIES} workers ended in the middle of this step; see their logs, and try again.",
)


def request_checks(*, member: Member, host_id: UUID, again: CheckStep | None = None) -> CheckList:
    """Request the remaining steps from a worker, or `again` and all steps after it.

    They continue until one needs an action of a user, or all are complete.
    """
    host = _load_host(member, host_id)
    with transaction.atomic():
        if again is not None:
            begin_again(host=host, step=again)
        if load_checks(host).next_step is not None:
            request_check(host)
            wake_check(host.pk)
    return load_checks(host)


def run_checks(host_id: UUID) -> None:
    """Execute the requested checks, unless another worker does.

    If the team of the host uses its share of the threads, a later tick executes them.
    """
    team = Host.objects.filter(pk=host_id).values_list("team", flat=True).first()
    with SHARES.admit(team) as admitted:
        if admitted:
            _run_steps(host_id)


def _run_steps(host_id: UUID) -> None:
    since = time.monotonic()
    request = claim_request(host_id)
    if request is None:
        return
    try:
        with HEARTBEAT.keeping(build_request_claim(request, since=since)) as claim:
            while _try_next(request, claim):
                pass
            end_request(request)
    except ClaimLost:
        logger.info("checks of %s: another worker took over", host_id)


def _try_next(request: CheckRequest, claim: Claim) -> bool:
    """Try one step; return False if it was the last, or the host must not be disturbed now."""
    host = Host.objects.select_related("credential").get(pk=request.host_id)
    step = CheckStep.QUIET if request.idle_only else load_checks(host).next_step
    if step is None or host.state == HostState.RETIRED or hasattr(host, "lease"):
        return False
    began = time.monotonic()
    claim.begin(f"the check {step.label!r} of {host.name}", STEP_S)
    died = request.tries > MAX_TRIES
    finding = _DIED if died else _run_step(host, step, claim)
    claim.renew()
    record_check(host=host, step=step, finding=finding, seconds=time.monotonic() - began)
    request.tries = 1
    record_progress(request)
    return not request.idle_only


def _load_host(member: Member, host_id: UUID) -> Host:
    member.require(Role.MAINTAINER, to="check a host")
    host = load_own_host(member, host_id)
    if host.state == HostState.RETIRED:
        raise ConflictError(f"the host {host} is retired: activate it first")
    if hasattr(host, "lease"):
        raise ConflictError(
            f"a job runs on {host}: checks would disturb it; wait until it has ended"
        )
    return host


def _run_step(host: Host, step: CheckStep, claim: Claim) -> Finding:
    try:
        return _STEPS[step](host, claim)
    except HostError as error:
        # Nobody can log in before the key of a new host is installed.
        is_new = host.last_seen_at is None and isinstance(error, LoginRefusedError)
        return Finding(
            outcome=CheckOutcome.ACTION_REQUIRED if is_new else CheckOutcome.FAILED,
            message=str(error),
            remedies=remediation.find_remedies(host, step, error),
        )
    except ClaimLost:
        raise
    except Exception as error:
        logger.exception("the check %s of %s failed", step, host.pk)
        return Finding(
            outcome=CheckOutcome.FAILED,
            message=f"Internal error: {error}; see the worker's log, and try again.",
        )


def _check_reach(host: Host, _: Claim) -> Finding:
    address = reach_ssh_server(host.address, host.port, REACH_TIMEOUT_S, **_build_route(host))
    named = "" if address.ip == host.address else f" ({address.ip})"
    through = f" through {len(host.jump_hosts)} jump host(s)" if host.jump_hosts else ""
    return Finding(
        outcome=CheckOutcome.PASSED,
        message=f"{host.address}{named} answers on port {host.port}{through}: {address.server}",
    )


def _build_route(host: Host) -> dict[str, Any]:
    return {
        "networks": settings.HOST_NETWORKS,
        "jumps": list_jumps(host),
        "private_key": load_jump_key(host),
        "certificate": host.credential.certificate if host.credential else "",
    }


def _check_key(host: Host, _: Claim) -> Finding:
    shown = scan_host_key(host.address, host.port, REACH_TIMEOUT_S, **_build_route(host))
    if shown.line == host.host_key:
        message = f"It shows the key that is pinned: {shown.fingerprint_sha256} ({shown.type})"
        return Finding(outcome=CheckOutcome.PASSED, message=message)
    return Finding(
        outcome=CheckOutcome.ACTION_REQUIRED,
        message=_format_key_question(host, shown),
        remedies=remediation.suggest_key_comparison(shown),
        shown_key=shown.line,
    )


def _format_key_question(host: Host, shown: HostKey) -> str:
    if not host.host_key:
        return f"{host.address} shows a key that is not confirmed yet."
    pinned = HostKey.parse(host.host_key).fingerprint_sha256
    return (
        f"{host.address} shows another key than the pinned one ({pinned}). The host was set up "
        "again, or another machine answers at its address: pin it only if you know why it changed."
    )


_STEPS: Mapping[CheckStep, Callable[[Host, Claim], Finding]] = MappingProxyType(
    {CheckStep.REACH: _check_reach, CheckStep.KEY: _check_key, **checkup_inside.STEPS}
)
