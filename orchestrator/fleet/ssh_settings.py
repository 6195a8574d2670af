"""The SSH settings of hosts: checks and changes."""

import re
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.fleet import selectors
from orchestrator.fleet.models import Credential, Host, HostTransport
from orchestrator.transport.address import JumpHost
from orchestrator.transport.networks import (
    ForbiddenHostError,
    check_behind_jump,
    check_literal,
    is_ip_address,
)

_ADDRESS = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$")
MOST_JUMPS = 3
_LOGIN = re.compile(r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$")
_NAME = re.compile(r"^[a-z0-9][a-z0-9_-]{0,59}$")
#: A plain name as `useradd` accepts it: a command line cannot read it in another way.
_USER = re.compile(r"^[a-z_][a-z0-9_-]{0,31}$")
_PATH = re.compile(r"^[A-Za-z0-9_./+-]{1,255}$")


def change_connection(
    *,
    member: Member,
    host_id: UUID,
    address: str,
    port: int,
    login: str,
    credential_id: UUID,
    work_dir: str,
    python: str,
    jump_hosts: Sequence[str] = (),
) -> Host:
    """Change how an idle host is reached; a pinned key stays pinned.

    `jump_hosts`: lines such as `user@bastion:22 ssh-ed25519 AAAA…`, in the order of the way.
    """
    member.require(Role.MAINTAINER, to="change the SSH settings of a host")
    host = selectors.load_own_host(member, host_id)
    if host.transport != HostTransport.SSH:
        raise ConflictError(f"the host {host} does not use SSH: it has no SSH settings")
    address = strip_brackets(address)
    check_connection(address, port, login, work_dir, python)
    jumps = check_jump_hosts(jump_hosts)
    credential = load_credential(member, credential_id)
    with transaction.atomic():
        changed = Host.objects.filter(pk=host.pk, lease=None).update(
            address=address,
            port=port,
            login=login,
            credential=credential,
            work_dir=work_dir,
            python=python,
            jump_hosts=jumps,
        )
        if not changed:
            raise ConflictError(
                f"a job runs on {host}: change its SSH settings when the job has ended"
            )
        record_audit(member=member, action="host.connection_changed", subject=host)
    return selectors.load_own_host(member, host_id)


def load_credential(member: Member, credential_id: UUID) -> Credential:
    credential = selectors.load_credentials(member).filter(pk=credential_id).first()
    if credential is None:
        raise InvalidRequestError("the team has no such key", field="credential")
    return credential


def check_connection(address: str, port: int, login: str, work_dir: str, python: str) -> None:
    if not is_ip_address(address):
        check_word(_ADDRESS, address, "address", "a host name or an IP address")
    check_word(_LOGIN, login, "login", "a user name of the host")
    check_word(_PATH, work_dir, "work_dir", "a path without spaces")
    check_word(_PATH, python, "python", "a command or path without spaces")
    try:
        check_literal(address, settings.HOST_NETWORKS)
    except ForbiddenHostError as error:
        raise InvalidRequestError(str(error), field="address") from error
    if not 1 <= port <= 65535:
        raise InvalidRequestError("expected a port from 1 to 65535", field="port")


def strip_brackets(address: str) -> str:
    """Return `2001:db8::7` for `[2001:db8::7]`, as URLs and known_hosts write it."""
    inner = address.strip().removeprefix("[").removesuffix("]")
    return inner if is_ip_address(inner) else address


def check_jump_hosts(lines: Sequence[str]) -> list[str]:
    """Return the jump hosts in their stored form. Their addresses follow the rules of hosts."""
    given = [line.strip() for line in lines if line.strip()]
    if len(given) > MOST_JUMPS:
        problem = f"at most {MOST_JUMPS} jump hosts, got {len(given)}"
        raise InvalidRequestError(problem, field="jump_hosts")
    return [_check_jump_host(line, number) for number, line in enumerate(given, start=1)]


def _check_jump_host(line: str, number: int) -> str:
    try:
        jump = JumpHost.parse(line)
        if number == 1:
            check_literal(jump.host, settings.HOST_NETWORKS)
        else:
            check_behind_jump(jump.host, settings.HOST_NETWORKS)
    except (InvalidRequestError, ForbiddenHostError) as error:
        raise InvalidRequestError(f"line {number}: {error}", field="jump_hosts") from error
    return jump.line


def check_user(text: str) -> str:
    """Return the user that measured code runs as on a host; empty: the login user."""
    name = text.strip()
    if name == "root":
        raise InvalidRequestError(
            "measured code must not run as root: name a user only for this purpose, or none",
            field="run_as",
        )
    if name:
        check_word(_USER, name, "run_as", "a user name of lower-case letters, digits and dashes")
    return name


def check_short_name(value: str, field: str = "slug") -> None:
    """Raise InvalidRequestError unless it is the short name of a host or a profile."""
    check_word(_NAME, value, field, "lower-case letters, digits and dashes, such as rack-1")


def check_word(pattern: re.Pattern[str], value: str, field: str, expected: str) -> None:
    if not pattern.fullmatch(value):
        raise InvalidRequestError(f"expected {expected}, got {value!r}", field=field)
