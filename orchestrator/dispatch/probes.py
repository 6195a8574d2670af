"""Probes of absent hosts: log in to a host that did not answer, so that its jobs need not try."""

import logging
import threading
from uuid import UUID

from orchestrator.core.errors import HostError, UnreachableError
from orchestrator.dispatch.host_starts import run_start_command, send_wake_packet
from orchestrator.dispatch.shares import SHARES
from orchestrator.fleet.absence import claim_probe
from orchestrator.fleet.connect import connect
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_host_error, record_host_seen

logger = logging.getLogger(__name__)

#: Probes of a worker process at once: each may last many seconds, and jobs need the other threads.
PROBES_AT_ONCE = 2
_BUDGET = threading.BoundedSemaphore(PROBES_AT_ONCE)


def probe_host(host_id: UUID) -> bool:
    """Return whether an absent host answers again; False also if its probe is not due.

    If too many probes run, or its team uses its share of the threads, a later tick probes it.
    """
    if not _BUDGET.acquire(blocking=False):
        return False
    try:
        return _probe_admitted(host_id)
    finally:
        _BUDGET.release()


def _probe_admitted(host_id: UUID) -> bool:
    team = Host.objects.filter(pk=host_id).values_list("team", flat=True).first()
    with SHARES.admit(team) as admitted:
        host = claim_probe(host_id) if admitted else None
        return host is not None and _probe(host)


def _probe(host: Host) -> bool:
    send_wake_packet(host)
    try:
        # A new connection: one from the pool may be older than the absence.
        connect(host).close()
    except HostError as error:
        record_host_error(host=host, error=_add_start(host, error))
        return False
    logger.info("the host %s answers again", host.name)
    record_host_seen(host=host)
    return True


def _add_start(host: Host, error: HostError) -> HostError:
    """Start a host that does not answer; return the error with what prevents that."""
    problem = run_start_command(host) if isinstance(error, UnreachableError) else ""
    return type(error)(f"{error} {problem}") if problem else error
