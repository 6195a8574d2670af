"""What a team may use: hosts, machine time in the queue, bytes of results and of mirrors.

The services that add to any of it ask here, inside the transaction that adds. A team whose limit
counts is locked meanwhile, so that two who ask at once do not both get the last of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import F

from orchestrator.accounts.models import Team, TeamQuota
from orchestrator.accounts.services import record_system_audit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError
from orchestrator.core.units import format_bytes, format_duration

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """None is no limit; `own` where they were set for the team."""

    hosts: int | None
    queued_minutes: int | None
    storage_mib: int | None
    mirrors_mib: int | None
    own: bool = False
    #: Bytes, as they were counted last, with what was imported since.
    storage_used: int = 0

    @property
    def queued_s(self) -> int | None:
        return None if self.queued_minutes is None else self.queued_minutes * 60

    @property
    def storage_bytes(self) -> int | None:
        return None if self.storage_mib is None else self.storage_mib * MIB

    @property
    def mirrors_bytes(self) -> int | None:
        return None if self.mirrors_mib is None else self.mirrors_mib * MIB


class QuotaExceededError(ConflictError):
    """The team has used what it may."""


def load_quotas(team: Team) -> Quotas:
    kept = TeamQuota.objects.filter(team=team).first()
    used = 0 if kept is None else kept.storage_used
    if kept is not None and kept.own:
        return Quotas(
            hosts=kept.hosts,
            queued_minutes=kept.queued_minutes,
            storage_mib=kept.storage_mib,
            mirrors_mib=kept.mirrors_mib,
            own=True,
            storage_used=used,
        )
    usual: Mapping[str, int | None] = settings.QUOTAS
    return Quotas(
        hosts=usual["hosts"],
        queued_minutes=usual["queued_minutes"],
        storage_mib=usual["storage_mib"],
        mirrors_mib=usual["mirrors_mib"],
        storage_used=used,
    )


@transaction.atomic
def set_quotas(*, team: Team, quotas: Quotas) -> None:
    """Gives a team quotas of its own, or with `own=False` the usual ones again; for the people who
    run this Pitwall, since a team does not raise its own."""
    values = {
        "own": quotas.own,
        "hosts": quotas.hosts if quotas.own else None,
        "queued_minutes": quotas.queued_minutes if quotas.own else None,
        "storage_mib": quotas.storage_mib if quotas.own else None,
        "mirrors_mib": quotas.mirrors_mib if quotas.own else None,
    }
    TeamQuota.objects.update_or_create(team=team, defaults=values)
    said = ", ".join(f"{name} {value}" for name, value in values.items() if name != "own")
    subject = said.replace("None", "without limit") if quotas.own else "the usual ones"
    record_system_audit(team=team, action="quota.set", subject=subject)


def check_hosts(*, team: Team, quotas: Quotas, used: int) -> None:
    """Before a host is added: `used` are those there are."""
    limit = quotas.hosts
    if limit is not None and used >= limit:
        raise QuotaExceededError(
            f"{team.name} may have {limit} host{'' if limit == 1 else 's'} and has {used}; retire "
            "one that is no longer needed, or ask whoever runs this Pitwall for more"
        )


def check_queue(*, team: Team, quotas: Quotas, queued_s: float, added_s: float) -> None:
    """Before a run is queued that adds `added_s` of machine time to the `queued_s` in the queue."""
    limit = quotas.queued_s
    if limit is not None and queued_s + added_s > limit:
        raise QuotaExceededError(
            f"this run would queue {format_duration(added_s)} of machine time; {team.name} may "
            f"have {format_duration(limit)} in the queue and has {format_duration(queued_s)}; "
            "choose fewer cases or rounds, wait for other runs or cancel one, or ask whoever runs "
            "this Pitwall for more"
        )


def check_storage(*, team: Team, quotas: Quotas, added: int = 0) -> None:
    """Before anything is measured or taken in that will be stored; `added`: its bytes, if known."""
    limit = quotas.storage_bytes
    if limit is None:
        return
    used = quotas.storage_used
    if used >= limit or used + added > limit:
        more = f", and this would add {format_bytes(added)}" if added else ""
        raise QuotaExceededError(
            f"raw output and imports of {team.name} take {format_bytes(used)} of the "
            f"{format_bytes(limit)} that they may{more}; shorten how long projects keep raw files "
            "and single trials, which frees space within minutes, or ask whoever runs this "
            "Pitwall for more"
        )


def note_import(*, team: Team, added: int) -> None:
    """So many bytes more than at the last count; the next one finds out what it really was."""
    changed = TeamQuota.objects.filter(team=team).update(storage_used=F("storage_used") + added)
    if not changed:
        # Not counted yet: the first count adds it up.
        TeamQuota.objects.get_or_create(team=team, defaults={"storage_used": added})


def lock_quotas(team: Team) -> Quotas:
    """The quotas, and the team held to the end of the transaction where there are any: others may
    reach them meanwhile."""
    quotas = load_quotas(team)
    if (quotas.hosts, quotas.queued_minutes, quotas.storage_mib) != (None, None, None):
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    return quotas


def note_storage(*, team: Team, used: int) -> None:
    defaults = {"storage_used": used, "storage_at": utc_now()}
    TeamQuota.objects.update_or_create(team=team, defaults=defaults)
