"""The command that starts an absent host. Another host of the same team runs it.

Pitwall's own machines run no command of a team. Like Wake-on-LAN, it is for hosts that jobs wait
for (`dispatch/host_starts.py`).
"""

import shlex
from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import UNUSABLE, Host, HostTransport

#: So that the audit log has the whole command.
MOST_CHARACTERS = 130


def check_start(
    member: Member, host: Host, *, command: Sequence[str] | None, helper: str | None
) -> dict[str, Any]:
    """Return the fields of the host to store.

    `helper`: the name of the host that runs the command. None keeps the present value. Raise
    InvalidRequestError with the field.
    """
    argv = host.start_command if command is None else _check_arguments(command)
    runner = host.start_host if helper is None else _find_helper(member, host, helper.strip())
    if argv and runner is None:
        raise InvalidRequestError(
            "choose the host that runs the start command: another host of the team over SSH",
            field="start_host",
        )
    if runner is not None and not argv:
        raise InvalidRequestError(
            f"enter the command that {runner.name} runs, or choose no host", field="start_command"
        )
    return {"start_command": argv, "start_host": runner}


def parse_command(text: str) -> list[str]:
    """Return the arguments of a command line, with the quotes of a shell but no other syntax."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidRequestError(
            f"expected a command with closed quotes: {str(error).lower()}", field="start_command"
        ) from error


def format_command(argv: Sequence[str]) -> str:
    return shlex.join(argv)


def describe_start(argv: Sequence[str], helper: Host | None) -> str:
    """Return the command and the host that runs it, for people."""
    if not argv:
        return "no start command"
    return f"`{format_command(argv)}` on {helper.name if helper else 'a removed host'}"


def _check_arguments(argv: Sequence[str]) -> list[str]:
    if argv and not argv[0]:
        raise InvalidRequestError("expected a program first", field="start_command")
    line = format_command(argv)
    if len(line) > MOST_CHARACTERS or not line.isprintable():
        raise InvalidRequestError(
            f"expected one line of at most {MOST_CHARACTERS} characters; for more, write a script "
            "on the host that runs it",
            field="start_command",
        )
    return list(argv)


def _find_helper(member: Member, host: Host, name: str) -> Host | None:
    if not name:
        return None
    helpers = list_helpers(member).exclude(pk=host.pk)
    found = helpers.filter(name=name).first()
    if found is None:
        known = ", ".join(helpers.values_list("name", flat=True)[:20]) or "none"
        raise InvalidRequestError(
            f"expected another host of the team over SSH, got {name[:60]!r}; there are: {known}",
            field="start_host",
        )
    return found


def list_helpers(member: Member) -> QuerySet[Host]:
    """Return the hosts of the team that could run a start command."""
    return (
        member.team.hosts.filter(transport=HostTransport.SSH)
        .exclude(state__in=UNUSABLE)
        .order_by("name")
    )
