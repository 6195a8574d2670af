"""Quotas of a team: hosts, machine time in the queue, bytes of results and of mirrors.

Services that add to any of these check the quota inside the transaction that adds. A team with a
quota is locked, so that two simultaneous requests cannot both use the rest of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import F

from cli.pitwall.units import format_bytes, format_duration
from orchestrator.accounts.models import Team, TeamQuota
from orchestrator.accounts.services import record_system_audit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """The quotas of a team; None is no limit; `own`: they were set for the team."""

    hosts: int | None
    queued_minutes: int | None
    storage_mib: int | None
    mirrors_mib: int | None
    own: bool = False
    #: Bytes at the last count, and of later imports.
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
    """The team has reached a quota."""


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
    """Set quotas for a team, or restore the defaults with `own=False`.

    Only for the operator: a team cannot change its quotas.
    """
    values = {
        "own": quotas.own,
        "hosts": quotas.hosts if quotas.own else None,
        "queued_minutes": quotas.queued_minutes if quotas.own else None,
        "storage_mib": quotas.storage_mib if quotas.own else None,
        "mirrors_mib": quotas.mirrors_mib if quotas.own else None,
    }
    TeamQuota.objects.update_or_create(team=team, defaults=values)
    summary = ", ".join(f"{name} {value}" for name, value in values.items() if name != "own")
    subject = summary.replace("None", "without limit") if quotas.own else "the defaults"
    record_system_audit(team=team, action="quota.set", subject=subject)


def check_hosts(*, team: Team, quotas: Quotas, used: int) -> None:
    """Check the quota before a host is added; `used`: the number of existing hosts."""
    limit = quotas.hosts
    if limit is not None and used >= limit:
        raise QuotaExceededError(
            f"{team.name} may have {limit} host{'' if limit == 1 else 's'} and has {used}; retire "
            "one that is no longer needed, or ask your administrator for a larger quota"
        )


def check_queue(*, team: Team, quotas: Quotas, queued_s: float, added_s: float) -> None:
    """Check before a run is queued that adds `added_s` of machine time to the queued `queued_s`."""
    limit = quotas.queued_s
    if limit is not None and queued_s + added_s > limit:
        raise QuotaExceededError(
            f"this run would queue {format_duration(added_s)} of machine time; {team.name} may "
            f"have {format_duration(limit)} in the queue and has {format_duration(queued_s)}; "
            "choose fewer cases or rounds, wait for other runs or cancel one, or ask your "
            "administrator for a larger quota"
        )


def check_storage(*, team: Team, quotas: Quotas, added: int = 0) -> None:
    """Check before results are measured or imported; `added`: their bytes, if known."""
    limit = quotas.storage_bytes
    if limit is None:
        return
    used = quotas.storage_used
    if used >= limit or used + added > limit:
        more = f", and this would add {format_bytes(added)}" if added else ""
        raise QuotaExceededError(
            f"raw output and imports of {team.name} use {format_bytes(used)} of a quota of "
            f"{format_bytes(limit)}{more}; shorten how long projects keep raw files "
            "and single trials, which frees space within minutes, or ask your administrator "
            "for a larger quota"
        )


def add_storage_used(*, team: Team, added: int) -> None:
    """Add imported bytes to the last count; the next count replaces the estimate."""
    changed = TeamQuota.objects.filter(team=team).update(storage_used=F("storage_used") + added)
    if not changed:
        # Not counted yet: the first count includes it.
        TeamQuota.objects.get_or_create(team=team, defaults={"storage_used": added})


def lock_quotas(team: Team) -> Quotas:
    """Return the quotas; if there are any, lock the team until the end of the transaction."""
    quotas = load_quotas(team)
    if (quotas.hosts, quotas.queued_minutes, quotas.storage_mib) != (None, None, None):
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    return quotas


def record_storage(*, team: Team, used: int) -> None:
    defaults = {"storage_used": used, "storage_at": utc_now()}
    TeamQuota.objects.update_or_create(team=team, defaults=defaults)
