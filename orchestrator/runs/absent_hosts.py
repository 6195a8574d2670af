"""The absent hosts that queued jobs wait for."""

import uuid
from collections import defaultdict

from orchestrator.fleet.absence import select_due_probes
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Placement
from orchestrator.runs.states import JobState

#: The most probes of one tick.
MAX_PROBES = 20


def load_due_probe_ids() -> list[uuid.UUID]:
    """Return some absent hosts whose probe is due and that a queued job could use.

    A job that runs on an absent host polls it itself.
    """
    due = list(select_due_probes().filter(lease=None))
    if not due:
        return []
    wanted = _load_wanted({host.team_id for host in due})
    return [host.pk for host in due if _list_names(host) & wanted[host.team_id]][:MAX_PROBES]


def _load_wanted(teams: set[int]) -> dict[int, set[object]]:
    """Return what the queued jobs of each team request."""
    rows = Placement.objects.filter(job__state=JobState.QUEUED, job__run__team__in=teams)
    fields = ("job__run__team", "wanted_host", "wanted_profile", "wanted_tag")
    wanted: dict[int, set[object]] = defaultdict(set)
    for team, *selectors in rows.values_list(*fields).distinct():
        wanted[team] |= {each for each in selectors if each}
    return wanted


def _list_names(host: Host) -> set[object]:
    """Return all by which a request may select the host: its ids and tags differ in type."""
    return {host.pk, host.profile_id, *host.tags}
