"""Starts of absent hosts: the packet of Wake-on-LAN, and the command that another host runs."""

import logging

from django.conf import settings

from orchestrator.accounts.services import record_system_audit
from orchestrator.core.errors import HostError
from orchestrator.fleet.absence import is_start_due
from orchestrator.fleet.connect import connect
from orchestrator.fleet.models import HELD, Host
from orchestrator.fleet.services import record_host_error, record_host_seen
from orchestrator.transport.base import Transport
from orchestrator.transport.wake_on_lan import send_magic_packet

logger = logging.getLogger(__name__)

#: After this time the command is stopped.
COMMAND_S = 30.0
#: The part of the command's output that is shown.
_SHOWN_CHARACTERS = 300


def send_wake_packet(host: Host) -> None:
    """Wake a host over the network, if its settings have a MAC address."""
    if not host.mac_address:
        return
    try:
        send_magic_packet(host.mac_address, settings.WAKE_ADDRESS)
    except OSError as error:
        logger.warning("no Wake-on-LAN packet can be sent to %s: %s", settings.WAKE_ADDRESS, error)


def run_start_command(host: Host) -> str:
    """Run the start command of an absent host if it is due; return why the last one failed, or "".

    Get the host from `claim_probe`.
    """
    if not host.start_command:
        return ""
    if not is_start_due(host):
        return host.start_problem
    problem = _run_command(host)
    Host.objects.filter(pk=host.pk).update(start_problem=problem)
    if problem:
        logger.warning("the start command of %s: %s", host.name, problem)
    return problem


def _run_command(host: Host) -> str:
    helper = host.start_host
    if helper is None:
        return "The host that runs its start command was removed: choose another one."
    if helper.state in HELD:
        state = helper.get_state_display().lower()
        return f"Its start command was not run: {helper.name} is {state}."
    if hasattr(helper, "lease"):
        return f"Its start command was not run: a job measures on {helper.name}."
    try:
        with connect(helper) as transport:
            record_host_seen(host=helper)
            outcome = _run_on(transport, host)
    except HostError as error:
        record_host_error(host=helper, error=error)
        outcome = str(error)
    # What a host sends may contain anything.
    outcome = " ".join(outcome.replace("\0", " ").split())
    subject = f"{host.name}, on {helper.name}: {outcome or 'status 0'}"
    record_system_audit(team=host.team, action="host.start_command_run", subject=subject)
    return f"Its start command on {helper.name} failed: {outcome}" if outcome else ""


def _run_on(transport: Transport, host: Host) -> str:
    try:
        done = transport.run(host.start_command, timeout_s=COMMAND_S)
    except HostError as error:
        # The helper has answered, so this is a problem of the command.
        return str(error)
    if done.exit_status == 0:
        return ""
    output = (done.stderr or done.stdout).decode(errors="replace").strip()
    return f"status {done.exit_status}: {output[-_SHOWN_CHARACTERS:] or 'no output'}"
