"""Hardware profiles that are created with a host, and named by the first facts that it reports."""

import contextlib
import secrets
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import ProtectedError
from django.utils.text import slugify

from orchestrator.accounts.models import Team
from orchestrator.fleet.facts import describe_machine_kind, is_same_machine_kind
from orchestrator.fleet.host_quota import check_room_for_names
from orchestrator.fleet.models import HardwareProfile, Host


def create_pending_profile(team: Team, host_name: str) -> HardwareProfile:
    """Create the profile of a host whose facts are unknown, in the caller's transaction."""
    check_room_for_names(team, profiles=1)
    return HardwareProfile.objects.create(
        team=team,
        slug=_find_free_slug(team, host_name),
        name=f"{host_name}, not detected yet",
        is_pending=True,
    )


def settle_profile(host: Host, fields: Mapping[str, Any]) -> None:
    """Store the facts of a host in its profile, in the caller's transaction.

    A pending profile is named by them, or replaced by a profile of the team that agrees with them.
    Other profiles get their unknown fields; known ones are never overwritten.
    """
    if not any(not getattr(host.profile, name) for name in fields):
        return
    profile = HardwareProfile.objects.select_for_update(of=("self",)).get(hosts=host)
    if not profile.is_pending:
        new = {name: value for name, value in fields.items() if not getattr(profile, name)}
        HardwareProfile.objects.filter(pk=profile.pk).update(**new)
    elif (known := _find_matching_profile(profile.team, fields)) and _replace(profile, known):
        host.profile = known
    elif name := describe_machine_kind(fields):
        HardwareProfile.objects.filter(pk=profile.pk).update(
            is_pending=False, name=name, slug=_find_free_slug(profile.team, name), **fields
        )


def remove_pending_profile(profile: HardwareProfile) -> None:
    """Remove the profile of a removed host that never reported facts, if nothing refers to it."""
    if profile.is_pending:
        with contextlib.suppress(ProtectedError), transaction.atomic():
            profile.delete()


def _find_matching_profile(team: Team, fields: Mapping[str, Any]) -> HardwareProfile | None:
    known = team.profiles.filter(is_pending=False).order_by("created_at", "pk")
    return next((each for each in known if is_same_machine_kind(vars(each), fields)), None)


def _replace(pending: HardwareProfile, known: HardwareProfile) -> bool:
    """Move the hosts of a pending profile; False if something else, such as a run, refers to it."""
    try:
        with transaction.atomic():
            Host.objects.filter(profile=pending).update(profile=known)
            pending.delete()
    except ProtectedError:
        return False
    return True


def _find_free_slug(team: Team, name: str) -> str:
    slug = slugify(name)[:50].strip("-") or "profile"
    taken = team.profiles.filter(slug=slug).exists()
    return f"{slug}-{secrets.token_hex(4)}" if taken else slug
