"""Writes of profiles, credentials, hosts and their facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.db.models.functions import Coalesce, Now

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, Team
from orchestrator.accounts.services import record_audit
from orchestrator.core.clock import utc_now
from orchestrator.core.counting import count
from orchestrator.core.dependents import DependentCount
from orchestrator.core.errors import (
    ConflictError,
    HostError,
    HostKeyMismatchError,
    InvalidRequestError,
    LoginRefusedError,
)
from orchestrator.fleet import selectors, vault
from orchestrator.fleet.absence import ANSWERING
from orchestrator.fleet.detected_profiles import (
    create_pending_profile,
    remove_pending_profile,
    settle_profile,
)
from orchestrator.fleet.facts import (
    compare_facts,
    compute_fingerprint,
    extract_profile_fields,
    identify_machine,
)
from orchestrator.fleet.host_quota import check_room, check_room_for_names
from orchestrator.fleet.host_settings import quarantine
from orchestrator.fleet.host_variables import list_folders
from orchestrator.fleet.identities import record_identity
from orchestrator.fleet.models import (
    HELD,
    Credential,
    HardwareProfile,
    Host,
    HostChange,
    HostSnapshot,
    HostState,
    HostTransport,
)
from orchestrator.fleet.ssh_settings import (
    check_connection,
    check_jump_hosts,
    check_short_name,
    check_user,
    load_credential,
    strip_brackets,
)
from orchestrator.transport import keys
from orchestrator.transport.ssh import HostKey, scan_host_key

SCAN_TIMEOUT_S = 8.0
SEEN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHost:
    """The fields that a user enters for a new SSH host.

    Without `profile_slug`, its facts create a hardware profile or select a known one.
    """

    name: str
    profile_slug: str = ""
    address: str
    port: int
    login: str
    credential_id: UUID
    work_dir: str = ".pitwall"
    python: str = "python3"
    run_as: str = ""
    jump_hosts: Sequence[str] = ()


def save_profile(*, member: Member, slug: str, name: str, **facts: Any) -> HardwareProfile:
    """Create or update a hardware profile; unknown facts are left out or None."""
    member.require(Role.MEMBER, to="change hardware profiles")
    check_short_name(slug)
    with transaction.atomic():
        if not HardwareProfile.objects.filter(team=member.team, slug=slug).exists():
            check_room_for_names(member.team, profiles=1)
        profile, created = HardwareProfile.objects.update_or_create(
            team=member.team, slug=slug, defaults={"name": name, "is_pending": False, **facts}
        )
        action = "profile.created" if created else "profile.changed"
        record_audit(member=member, action=action, subject=slug)
    return profile


def list_profile_dependents(profile: HardwareProfile) -> tuple[DependentCount, ...]:
    """Return what refers to a profile; hosts and jobs prevent its deletion."""
    hosts = tuple(profile.hosts.order_by("name").values_list("name", flat=True))
    figures = profile.reference_results.count()
    dependents = (
        DependentCount(title="Hosts", count=len(hosts), names=hosts[:5]),
        DependentCount(title="Reference results, which lose their machine", count=figures),
    )
    return tuple(each for each in dependents if each.count)


def delete_profile(*, member: Member, slug: str) -> None:
    """Delete a profile that no host has. Raise ConflictError if a host or a job refers to it."""
    member.require(Role.MAINTAINER, to="delete a hardware profile")
    profile = selectors.load_profile(member, slug)
    hosts = ", ".join(profile.hosts.order_by("name").values_list("name", flat=True)[:5])
    if hosts:
        raise ConflictError(f"hosts have the profile {slug}: {hosts}; retired hosts keep theirs")
    try:
        with transaction.atomic():
            record_audit(member=member, action="profile.deleted", subject=slug)
            profile.delete()
    except ProtectedError as error:
        raise ConflictError(f"jobs of earlier runs asked for the profile {slug}") from error


def add_credential(*, member: Member, name: str, private_key: str | None = None) -> Credential:
    """Create a key pair to log in with: the given one, or a new Ed25519 pair."""
    member.require(Role.MAINTAINER, to="add a key")
    if not name.strip():
        raise InvalidRequestError("enter a name for the key", field="name")
    pair = keys.parse_private_key(private_key) if private_key else keys.generate_key()
    try:
        with transaction.atomic():
            credential = Credential(
                team=member.team,
                name=name.strip()[:100],
                public_key=pair.public_openssh,
                fingerprint=pair.fingerprint,
            )
            credential.sealed_private_key = vault.seal(
                credential, "sealed_private_key", pair.private_openssh
            )
            credential.save(force_insert=True)
            record_audit(member=member, action="credential.created", subject=credential)
    except IntegrityError as error:
        problem = f"the team already has a key named {name}; choose another name"
        raise ConflictError(problem) from error
    return credential


def add_host(*, member: Member, new: NewHost) -> tuple[Host, HostKey]:
    """Add a host and return it with the key that it showed just now; for scripts.

    The host is not used before `confirm_host_key` pins that key. Raise HostError, and write
    nothing, if it cannot be reached.
    """
    _check_for_entry(member, new)
    shown = scan_host_key(
        strip_brackets(new.address), new.port, SCAN_TIMEOUT_S, networks=settings.HOST_NETWORKS
    )
    return enter_host(member=member, new=new), shown


def enter_host(*, member: Member, new: NewHost) -> Host:
    """Add a host as described by the user, without trying to reach it.

    It is not used before its checks have passed (`fleet.checks`).
    """
    profile, credential = _check_for_entry(member, new)
    with transaction.atomic():
        check_room(member.team)
        host = Host.objects.create(
            team=member.team,
            profile=profile or create_pending_profile(member.team, new.name),
            name=new.name,
            address=strip_brackets(new.address),
            port=new.port,
            login=new.login,
            credential=credential,
            work_dir=new.work_dir,
            python=new.python,
            run_as=check_user(new.run_as),
            jump_hosts=check_jump_hosts(new.jump_hosts),
        )
        record_audit(member=member, action="host.added", subject=host)
    return host


def add_local_host(
    *, member: Member, name: str, profile: HardwareProfile | None = None, python: str
) -> Host:
    """Add the machine that the workers run on as a host; there is no key to confirm.

    Without a profile, its first facts create one or select a known one.
    """
    member.require(Role.MAINTAINER, to="add a host")
    with transaction.atomic():
        known = member.team.hosts.select_related("profile").filter(name=name).first()
        if known is None:
            check_room(member.team)
            profile = profile or create_pending_profile(member.team, name)
        else:
            profile = profile or known.profile
        return _store_local_host(member.team, name, profile, python)


def _store_local_host(team: Team, name: str, profile: HardwareProfile, python: str) -> Host:
    host, _ = Host.objects.update_or_create(
        team=team,
        name=name,
        defaults={
            "profile": profile,
            "transport": HostTransport.LOCAL,
            "python": python,
            "state": HostState.READY,
            "message": "",
        },
    )
    return host


def pin_host_key(*, member: Member, host_id: UUID, host_key: str) -> Host:
    """Pin the key that the member has compared; `host_key` as `ssh-ed25519 AAAA…`."""
    member.require(Role.MAINTAINER, to="confirm a host key")
    host = selectors.load_own_host(member, host_id)
    pinned = HostKey.parse(host_key).line
    with transaction.atomic():
        Host.objects.filter(pk=host.pk).update(host_key=pinned)
        record_audit(member=member, action="host.key_confirmed", subject=host)
    return selectors.load_own_host(member, host_id)


def confirm_host_key(*, member: Member, host_id: UUID, host_key: str) -> Host:
    """Pin a key and let the host be used at once, without checks; for scripts.

    A host in maintenance, in quarantine or retired stays so.
    """
    with transaction.atomic():
        host = pin_host_key(member=member, host_id=host_id, host_key=host_key)
        waiting = [HostState.UNCONFIRMED, HostState.UNREACHABLE, HostState.READY]
        Host.objects.filter(pk=host.pk, state__in=waiting).update(
            state=HostState.READY, message="", **ANSWERING
        )
    host.refresh_from_db()
    return host


def remove_host(*, member: Member, host_id: UUID) -> None:
    """Remove a host that never measured. Retire one that did, to keep its results."""
    member.require(Role.MAINTAINER, to="remove a host")
    host = selectors.load_host(member, host_id)
    with transaction.atomic():
        if _delete(host):
            remove_pending_profile(host.profile)
        else:
            if host.state == HostState.EXTERNAL:
                raise ConflictError(
                    f"results of {host} were imported; they would be removed with it"
                )
            Host.objects.filter(pk=host.pk).update(
                state=HostState.RETIRED, message="removed by a member; its results remain"
            )
        record_audit(member=member, action="host.removed", subject=host.name)


def record_host_error(*, host: Host, error: HostError) -> None:
    """Store why the host could not be used, to be shown on its page.

    A host that only a person can fix (another key, a refused login) is quarantined, so that it does
    not fail the jobs of the whole queue.
    """
    count("pitwall_host_failures_total", kind=type(error).__name__.removesuffix("Error"))
    if isinstance(error, HostKeyMismatchError | LoginRefusedError):
        quarantine(host=host, reason=str(error))
        return
    mine = Host.objects.filter(pk=host.pk)
    if error.transient:
        mine.update(unreachable_since=Coalesce("unreachable_since", Now()))
    mine.exclude(state__in=HELD).update(
        message=str(error)[:2000],
        **({"state": HostState.UNREACHABLE} if error.transient else {}),
    )


def record_host_seen(*, host: Host) -> None:
    """Store that the host has answered. A host that is held stays held, with its message.

    Unless something changes, it writes at most once per SEEN_S: jobs check their hosts often.
    """
    fresh = host.last_seen_at and (utc_now() - host.last_seen_at).total_seconds() < SEEN_S
    if fresh and host.state == HostState.READY:
        return
    seen = Host.objects.filter(pk=host.pk)
    now = utc_now()
    if not seen.exclude(state__in=HELD).update(
        state=HostState.READY, message="", last_seen_at=now, **ANSWERING
    ):
        seen.update(last_seen_at=now, **ANSWERING)


@transaction.atomic
def record_snapshot(*, host: Host, facts: dict[str, Any]) -> HostSnapshot:
    """Store the facts that the host reports, and a HostChange if it has become another machine.

    The snapshot also has the tuning and the folders of programs of the host, which the jobs of this
    snapshot use.
    """
    record_host_seen(host=host)
    record_identity(host, facts)
    before = selectors.find_latest_snapshot(host)
    static = identify_machine(
        facts, tuning=host.tuning, env=host.env, before=before.facts if before else {}
    )
    snapshot = HostSnapshot.objects.create(
        host=host,
        facts={
            **facts,
            "tuning": host.tuning,
            "path_folders": list_folders(host.env),
            "static": static,
        },
        fingerprint=compute_fingerprint(static),
    )
    changed = compare_facts(before.facts, snapshot.facts) if before else {}
    if changed:
        HostChange.objects.create(
            host=host, snapshot=snapshot, changed=changed, at=snapshot.taken_at
        )
    settle_profile(host, extract_profile_fields(facts))
    return snapshot


def _delete(host: Host) -> bool:
    """Delete the host. Return False if jobs, trials or requests refer to it."""
    try:
        with transaction.atomic():
            host.delete()
    except ProtectedError:
        return False
    return True


def _check_for_entry(member: Member, new: NewHost) -> tuple[HardwareProfile | None, Credential]:
    member.require(Role.MAINTAINER, to="add a host")
    check_short_name(new.name, "name")
    check_connection(strip_brackets(new.address), new.port, new.login, new.work_dir, new.python)
    check_user(new.run_as)
    slug = new.profile_slug
    profile = selectors.load_chosen_profile(member, slug) if slug else None
    credential = load_credential(member, new.credential_id)
    if member.team.hosts.filter(name=new.name).exists():
        problem = f"the team already has a host named {new.name}; choose another name"
        raise InvalidRequestError(problem, field="name")
    return profile, credential
