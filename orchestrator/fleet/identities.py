"""The identity of machines: which hosts are one machine, and which share a work directory."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

from orchestrator.core.errors import ConflictError, HostSetupError
from orchestrator.fleet.models import Host, HostState

#: The facts that identify a machine or a work directory, each with a field of Host.
_FACTS = ("machine_id", "boot_id", "installation_id")
_MOST_CHARACTERS = 64


def record_identity(host: Host, facts: Mapping[str, Any]) -> None:
    """Store what identifies the machine; unknown facts replace older values."""
    Host.objects.filter(pk=host.pk).update(**_extract(facts))


def find_same_machine(host: Host, facts: Mapping[str, Any]) -> Host | None:
    """Return another host of the team that is the machine with these facts.

    Machines of one boot id are the same. Those of one machine id are, unless one is a copy of the
    other's disk.
    """
    equal = _find_equal(host, facts, "machine_id", "boot_id")
    return equal.filter(team=host.team_id).first()


def is_same_boot(host: Host, facts: Mapping[str, Any]) -> bool:
    return bool(host.boot_id) and host.boot_id == _extract(facts)["boot_id"]


def shares_work_dir(host: Host, facts: Mapping[str, Any]) -> bool:
    """Return whether a host of any team has this work directory already."""
    return _find_equal(host, facts, "installation_id").exists()


def require_unused_machine(host: Host) -> None:
    """Raise ConflictError if another host took over the machine of a retired one, or its folder.

    It compares what the host reported last, as its check does for a new host.
    """
    facts = {name: getattr(host, name) for name in _FACTS}
    other = find_same_machine(host, facts)
    if other is not None:
        raise ConflictError(
            f"the machine of {host} is the host {other.name} now: use that one, or retire it first"
        )
    if shares_work_dir(host, facts):
        raise ConflictError(
            f"another host of Pitwall has the work directory of {host} now: add the machine again, "
            "with another work directory"
        )


def require_separate_machines(hosts: Sequence[Host]) -> None:
    """Raise HostSetupError if two hosts of one job are one machine: each would wait for the other.

    Such hosts were added before one of them reported its boot id.
    """
    if len(hosts) < 2 or not settings.ONE_HOST_PER_MACHINE:
        return
    known: dict[str, str] = {}
    rows = Host.objects.filter(pk__in=[host.pk for host in hosts]).exclude(boot_id="")
    for name, boot_id in rows.order_by("name").values_list("name", "boot_id"):
        if boot_id in known:
            raise HostSetupError(
                f"the hosts {known[boot_id]} and {name} are one machine; a job with several hosts "
                "needs separate machines"
            )
        known[boot_id] = name


def _find_equal(host: Host, facts: Mapping[str, Any], *names: str) -> QuerySet[Host]:
    """Return the other hosts that have one of these facts, the oldest first."""
    if not settings.ONE_HOST_PER_MACHINE:
        return Host.objects.none()
    equal = Q(pk__in=())
    for name, value in _extract(facts).items():
        if name in names and value:
            equal |= Q(**{name: value})
    others = Host.objects.exclude(pk=host.pk).exclude(state=HostState.RETIRED)
    return others.filter(equal).order_by("created_at")


def _extract(facts: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(facts.get(name) or "")[:_MOST_CHARACTERS] for name in _FACTS}
