"""Settings and states of hosts: open hours, tuning, maintenance, quarantine, retirement."""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit, record_system_audit
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.fleet import open_hours, selectors
from orchestrator.fleet.absence import ANSWERING
from orchestrator.fleet.checks import begin_again
from orchestrator.fleet.host_quota import check_room
from orchestrator.fleet.host_variables import check_variables
from orchestrator.fleet.identities import require_unused_machine
from orchestrator.fleet.models import CheckStep, Host, HostState, HostTransport
from orchestrator.fleet.ssh_settings import check_user
from orchestrator.fleet.start_commands import check_start, describe_start
from orchestrator.fleet.tuning import check_tuning
from orchestrator.transport.wake_on_lan import parse_mac_address

_TAG = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
MAX_TAGS = 30
LEAST_DISK_BYTES = 100 * 2**20
MOST_DISK_BYTES = 2**60

#: State → the permitted previous states.
_MAY_FOLLOW: Mapping[HostState, frozenset[HostState]] = {
    HostState.MAINTENANCE: frozenset(
        {
            HostState.READY,
            HostState.UNREACHABLE,
            HostState.QUARANTINED,
            HostState.MAINTENANCE,
        }
    ),
    # A member who works on a host in maintenance must not find it in another state.
    HostState.QUARANTINED: frozenset({HostState.READY, HostState.UNREACHABLE}),
    HostState.READY: frozenset({HostState.MAINTENANCE, HostState.QUARANTINED, HostState.RETIRED}),
    HostState.RETIRED: frozenset(HostState) - {HostState.RETIRED, HostState.EXTERNAL},
}


def set_host_settings(
    *,
    member: Member,
    host_id: UUID,
    tags: Sequence[str] | None = None,
    open_hours: str | None = None,
    timezone: str | None = None,
    data_address: str | None = None,
    disk_limit_bytes: int | None = None,
    tuning: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    run_as: str | None = None,
    is_shared: bool | None = None,
    mac_address: str | None = None,
    start_command: Sequence[str] | None = None,
    start_host: str | None = None,
) -> Host:
    """Change the given settings and keep the others. Jobs that already run are not affected.

    Whether the host can start programs as the user `run_as` is left to its checks. `start_host`:
    the name of the host that runs the `start_command`.
    """
    member.require(Role.MAINTAINER, to="change the settings of a host")
    host = selectors.load_host(member, host_id)
    given = {
        "tags": tags,
        "open_hours": open_hours,
        "timezone": timezone,
        "data_address": data_address,
        "disk_limit_bytes": disk_limit_bytes,
        "tuning": tuning,
        "env": env,
        "run_as": run_as,
        "is_shared": is_shared,
        "mac_address": mac_address,
    }
    changes = {name: _CHECKS[name](value) for name, value in given.items() if value is not None}
    if start_command is not None or start_host is not None:
        changes |= check_start(member, host, command=start_command, helper=start_host)
    if changes:
        _store_settings(member, host, changes)
    return selectors.load_host(member, host_id)


@transaction.atomic
def _store_settings(member: Member, host: Host, changes: Mapping[str, Any]) -> None:
    Host.objects.filter(pk=host.pk).update(**changes)
    if changes.get("run_as", host.run_as) != host.run_as:
        begin_again(host=host, step=CheckStep.AGENT)
    record_audit(
        member=member, action="host.settings_changed", subject=f"{host}: {', '.join(changes)}"
    )
    start = [changes.get(name, getattr(host, name)) for name in ("start_command", "start_host")]
    if start != [host.start_command, host.start_host]:
        # The problem is that of another command.
        Host.objects.filter(pk=host.pk).update(start_problem="")
        record_audit(
            member=member,
            action="host.start_command_changed",
            subject=f"{host}: {describe_start(*start)}",
        )


def put_in_maintenance(*, member: Member, host_id: UUID, reason: str = "") -> Host:
    """Start nothing new on the host; running jobs may end. See `release_host`."""
    member.require(Role.MEMBER, to="put a host in maintenance")
    host = selectors.load_host(member, host_id)
    message = (
        f"{member.user.get_username()}: {_check_short_text(reason, 500, 'reason')}".removesuffix(
            ": "
        )
    )
    with transaction.atomic():
        _move(host, HostState.MAINTENANCE, message=message)
        record_audit(member=member, action="host.maintenance", subject=f"{host}: {reason}")
    return selectors.load_host(member, host_id)


def quarantine(*, host: Host, reason: str) -> bool:
    """Quarantine a host automatically. Return False if it is already held."""
    with transaction.atomic():
        mine = Host.objects.filter(pk=host.pk, state__in=_MAY_FOLLOW[HostState.QUARANTINED])
        if not mine.update(state=HostState.QUARANTINED, message=reason[:2000]):
            return False
        record_system_audit(team=host.team, action="host.quarantined", subject=f"{host}: {reason}")
    return True


def release_host(*, member: Member, host_id: UUID) -> Host:
    """Let jobs run again on a host that is in maintenance, quarantined or retired."""
    member.require(Role.MEMBER, to="release a host")
    host = selectors.load_host(member, host_id)
    if host.state == HostState.RETIRED:
        member.require(Role.MAINTAINER, to="activate a retired host")
    if host.transport == HostTransport.SSH and not host.host_key:
        raise ConflictError(f"the key of {host} is not confirmed yet; confirm it first")
    with transaction.atomic():
        if host.state == HostState.RETIRED:
            check_room(member.team)
            require_unused_machine(host)
        _move(host, HostState.READY, message="", **ANSWERING)
        record_audit(member=member, action="host.released", subject=host)
    return selectors.load_host(member, host_id)


def retire_host(*, member: Member, host_id: UUID) -> Host:
    """Take a host out of use; its results are kept."""
    member.require(Role.MAINTAINER, to="retire a host")
    host = selectors.load_host(member, host_id)
    with transaction.atomic():
        _move(host, HostState.RETIRED, message="retired; its results remain")
        record_audit(member=member, action="host.retired", subject=host)
    return selectors.load_host(member, host_id)


def may_become(host: Host, state: HostState) -> bool:
    """Return whether the rules allow this transition of the host now."""
    return HostState(host.state) in _MAY_FOLLOW[state]


def _move(host: Host, state: HostState, **changes: Any) -> None:
    """Change the state unless the host's present state forbids it."""
    allowed = _MAY_FOLLOW[state]
    if not Host.objects.filter(pk=host.pk, state__in=allowed).update(state=state, **changes):
        host.refresh_from_db(fields=["state"])
        raise ConflictError(
            f"the host {host} is {_name_state(HostState(host.state))}; only a host that is "
            f"{' or '.join(_name_state(each) for each in HostState if each in allowed)} "
            f"can become {_name_state(state)}"
        )


def _name_state(state: HostState) -> str:
    return {HostState.UNCONFIRMED: "not confirmed"}.get(state, str(state.label).lower())


def _check_tags(tags: Iterable[str]) -> list[str]:
    normalized = sorted({tag.strip().lower() for tag in tags} - {""})
    for tag in normalized:
        if not _TAG.fullmatch(tag):
            raise InvalidRequestError(
                f"expected a tag of letters, digits, dots and dashes, at most 40 long, got {tag!r}",
                field="tags",
            )
    if len(normalized) > MAX_TAGS:
        raise InvalidRequestError(f"at most {MAX_TAGS} tags, got {len(normalized)}", field="tags")
    return normalized


def _check_open_hours(text: str) -> str:
    open_hours.parse(text)
    return _check_short_text(text, 500, "open_hours")


def _check_timezone(text: str) -> str:
    return open_hours.parse_zone(text.strip()).key


def _check_address(text: str) -> str:
    text = text.strip()
    if text and not _NAME.fullmatch(text) and not _is_ip(text):
        raise InvalidRequestError(
            f"expected a host name or an IP address without port, got {text!r}",
            field="data_address",
        )
    return text


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_disk_limit(value: int) -> int:
    if not LEAST_DISK_BYTES <= value <= MOST_DISK_BYTES:
        raise InvalidRequestError(
            f"expected at least {LEAST_DISK_BYTES // 2**20} MiB", field="disk_limit_bytes"
        )
    return value


def _check_short_text(text: str, limit: int, field: str) -> str:
    text = text.strip()
    if len(text) > limit or "\0" in text:
        raise InvalidRequestError(f"at most {limit} characters", field=field)
    return text


#: Each setting → the function that checks a given value and returns the one to store.
_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "tags": _check_tags,
    "open_hours": _check_open_hours,
    "timezone": _check_timezone,
    "data_address": _check_address,
    "disk_limit_bytes": _check_disk_limit,
    "tuning": check_tuning,
    "env": check_variables,
    "run_as": check_user,
    "is_shared": bool,
    "mac_address": parse_mac_address,
}
