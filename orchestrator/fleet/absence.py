"""Absent hosts: since when a host does not answer, and when it is probed again.

Absence is normal: laptops sleep, machines are off at night. A host that does not answer gets no
job, and its jobs wait. A probe logs in to it from time to time (`dispatch/probes.py`).
"""

import uuid
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from orchestrator.database.clock import read_database_time
from orchestrator.fleet.models import Host, HostState

#: The pause after the first failed probe; each further pause is twice as long, up to the last.
FIRST_PAUSE_S = 10.0
LAST_PAUSE_S = 300.0
#: The jobs of a team try to reach its absent hosts at most so many times a second, as long as each
#: is tried within LONGEST_WAIT_S.
TRIES_A_SECOND = 10.0
LONGEST_WAIT_S = 60.0
#: The fields of a host that answers.
ANSWERING = {
    "unreachable_since": None, "probe_at": None, "failed_probes": 0, "start_problem": "",
}  # fmt: skip
#: What a probe needs to connect to the host, and to the one that starts it.
_CONNECTED = ("team", "credential", "start_host__credential")
#: A count of failed probes above this changes nothing.
_MANY = 100


def compute_probe_pause_s(failed: int) -> float:
    """Return the seconds until the next probe after this many failed ones (1 or more)."""
    return float(min(LAST_PAUSE_S, FIRST_PAUSE_S * 2 ** (min(failed, _MANY) - 1)))


def compute_least_pause_s(absent: int) -> float:
    """Return the least seconds between two tries of a job, for this many absent hosts.

    An outage of a network affects all hosts behind it at once.
    """
    return min(LONGEST_WAIT_S, absent / TRIES_A_SECOND)


def load_least_pause_s(host: Host) -> float:
    """Return `compute_least_pause_s` of the team of an absent host."""
    absent = Host.objects.filter(team=host.team_id, state=HostState.UNREACHABLE)
    return compute_least_pause_s(absent.count())


def load_absence_s(host: Host) -> float:
    """Return the seconds since the host stopped to answer; 0 if it answered in between."""
    host.refresh_from_db(fields=["unreachable_since"])
    since = host.unreachable_since
    return 0.0 if since is None else (read_database_time() - since).total_seconds()


def select_due_probes() -> QuerySet[Host]:
    """Return the unreachable hosts whose next probe is due, the longest waiting first."""
    due = Q(probe_at=None) | Q(probe_at__lte=Now())
    return Host.objects.filter(due, state=HostState.UNREACHABLE).order_by("probe_at", "pk")


def is_start_due(host: Host) -> bool:
    """Return whether the probe that `claim_probe` returned also runs the start command.

    It runs at the first probe of an absence, and with the longest pauses: starting takes minutes.
    """
    first = host.failed_probes == 0
    return first or compute_probe_pause_s(host.failed_probes + 1) == LAST_PAUSE_S


def claim_probe(host_id: uuid.UUID) -> Host | None:
    """Return the host if its probe is due, and schedule the next one.

    Of several workers one gets it. None for the others.
    """
    host = select_due_probes().select_related(*_CONNECTED).filter(pk=host_id).first()
    if host is None:
        return None
    failed = min(host.failed_probes + 1, _MANY)
    pause = timedelta(seconds=compute_probe_pause_s(failed))
    mine = select_due_probes().filter(pk=host_id, failed_probes=host.failed_probes)
    return host if mine.update(failed_probes=failed, probe_at=Now() + pause) else None
