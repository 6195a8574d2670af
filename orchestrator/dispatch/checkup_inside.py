"""The checks that need a login: Python, agent, load tools, clock and idle load."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from cli.pitwall.units import format_bytes, format_duration
from orchestrator.core.errors import HostSetupError
from orchestrator.core.heartbeat import Claim
from orchestrator.dispatch import remediation
from orchestrator.dispatch.agent import LEAN, Agent, AgentError
from orchestrator.dispatch.guarded_transport import GuardedTransport
from orchestrator.dispatch.tools import SCRIPT, locate_tool
from orchestrator.fleet.checks import Finding
from orchestrator.fleet.connect import build_ssh_address, get_local_work_dir
from orchestrator.fleet.models import CheckOutcome, CheckStep, Host, HostTransport
from orchestrator.fleet.selectors import find_latest_snapshot
from orchestrator.fleet.services import record_snapshot
from orchestrator.loadtools.registry import TOOLS
from orchestrator.loadtools.thresholds import THRESHOLDS, format_quantity
from orchestrator.transport.base import Transport
from orchestrator.transport.local import LocalTransport
from orchestrator.transport.ssh import SshTransport

LEAST_PYTHON = (3, 9)
#: The agent needs these modules, and minimal packages of Python do not contain them.
MODULES = ("zlib", "ssl", "json", "argparse", "hashlib")
#: With a larger offset the logs of two machines cannot be aligned.
CLOCK_OFF_S = 1.0
CLOCK_SAMPLES = 3
WORD_TIMEOUT_S = 20.0
_VERSION = (
    "import sys\n"
    "missing = []\n"
    f"for name in {MODULES!r}:\n"
    "    try:\n"
    "        __import__(name)\n"
    "    except ImportError:\n"
    "        missing.append(name)\n"
    "print('.'.join(map(str, sys.version_info[:3])) + ' ' + ','.join(missing))\n"
)
_TIME = "import time; print(repr(time.time()))"


@contextlib.contextmanager
def open_transport(host: Host, claim: Claim) -> Iterator[Transport]:
    """Open a connection in any state of the host: it is being set up, or fixed."""
    with _open(host) as transport, claim.closing(transport.close):
        yield GuardedTransport(transport, claim)


def _open(host: Host) -> LocalTransport | SshTransport:
    if host.transport == HostTransport.LOCAL:
        return LocalTransport(get_local_work_dir(host))
    return SshTransport(build_ssh_address(host))


def _check_login(host: Host, claim: Claim) -> Finding:
    with open_transport(host, claim):
        message = f"{host.login} can log in, and the work directory {host.work_dir} exists"
    return _build_passed(message)


def _check_python(host: Host, claim: Claim) -> Finding:
    with open_transport(host, claim) as transport:
        done = transport.run([host.python, *LEAN, "-c", _VERSION], timeout_s=WORD_TIMEOUT_S)
    if done.exit_status in {126, 127}:
        problem = f"the host {host.name} cannot run {host.python}: there is no such command."
        raise HostSetupError(problem)
    output = done.stdout.decode(errors="replace").strip()
    version, _, missing = output.partition(" ")
    if done.exit_status != 0 or not version[:1].isdigit():
        why = done.stderr.decode(errors="replace").strip()[-300:] or output or "no output"
        raise HostSetupError(f"{host.python} on {host.name} is not a working Python: {why}")
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST_PYTHON:
        raise HostSetupError(
            f"{host.python} on {host.name} is Python {version}; the agent needs 3.9 or newer."
        )
    if missing:
        raise HostSetupError(
            f"Python {version} on {host.name} lacks parts of its standard library: {missing}."
        )
    return _build_passed(f"{host.python} is Python {version}")


def _check_agent(host: Host, claim: Claim) -> Finding:
    with open_transport(host, claim) as transport:
        agent = Agent(transport, python=host.python)
        agent.install()
        facts = agent.facts()
        refusal = _check_user(host, agent)
    record_snapshot(host=host, facts=facts)
    if refusal is not None:
        return refusal
    message = f"It is unpacked below {host.work_dir} and answers: {_describe_machine(facts)}"
    return _build_passed(f"{message}. {_describe_user(host)}")


def _check_user(host: Host, agent: Agent) -> Finding | None:
    """Return a failure if measured code cannot run as the host's user; then no job could start."""
    if not host.run_as:
        return None
    try:
        agent.try_user(host.run_as)
    except AgentError as error:
        return Finding(
            outcome=CheckOutcome.FAILED,
            message=str(error),
            remedies=remediation.suggest_run_as_setup(host),
        )
    return None


def _describe_user(host: Host) -> str:
    """Describe the user that runs measured code: see SECURITY.md."""
    if host.run_as:
        login = host.login or "Pitwall's own workers"
        return f"Measured code runs as {host.run_as}; agent and load tools run as {login}"
    if host.transport == HostTransport.LOCAL:
        return "Measured code runs as the user of Pitwall's own workers: only suitable for a demo"
    if host.login == "root":
        return (
            "Measured code runs as root: name a user for measured code, or give the host a "
            "dedicated login for Pitwall"
        )
    return f"Measured code runs as {host.login}: use a login that has access to nothing else"


def _describe_machine(facts: Mapping[str, Any]) -> str:
    memory, free = facts.get("memory_bytes"), facts.get("disk_free_bytes")
    parts = [
        " ".join(str(facts[name]) for name in ("os_name", "os_version") if facts.get(name)),
        str(facts.get("cpu_model") or ""),
        f"{facts['threads']} CPUs" if facts.get("threads") else "",
        f"{format_bytes(memory)} of memory" if memory else "",
        f"{format_bytes(free)} free on disk" if free else "",
    ]
    return ", ".join(text for text in parts if text)


def _check_tools(host: Host, _: Claim) -> Finding:
    """Check the tools in the facts that the previous step has stored in a snapshot."""
    snapshot = find_latest_snapshot(host)
    facts = snapshot.facts if snapshot else {}
    fit, missing = [], []
    for name in sorted(TOOLS.keys() - {SCRIPT}):
        try:
            path, own = locate_tool(name, facts)
        except HostSetupError:
            missing.append(name)
        else:
            fit.append(f"{name} (sent by Pitwall)" if own else f"{name} ({path})")
    if not fit:
        return Finding(
            outcome=CheckOutcome.WARNING,
            message=f"{host.name} has none of {', '.join(missing)}, and Pitwall has none to send: "
            "it can run servers, but not create load.",
            remedies=remediation.suggest_tool_installation(facts),
        )
    lacking = f". Without: {', '.join(missing)}" if missing else ""
    return Finding(
        outcome=CheckOutcome.PASSED,
        message=f"It can create load with {', '.join(fit)}{lacking}",
        remedies=remediation.suggest_tool_installation(facts) if missing else (),
    )


def _check_clock(host: Host, claim: Claim) -> Finding:
    with open_transport(host, claim) as transport:
        off_s, error_s = min(
            (_measure_clock(transport, host) for _ in range(CLOCK_SAMPLES)),
            key=lambda sample: sample[1],
        )
    known = f"(known to {format_quantity(error_s, 's')})"
    if abs(off_s) - error_s < CLOCK_OFF_S:
        message = f"Its clock agrees with Pitwall's to {format_quantity(abs(off_s), 's')} {known}"
        return _build_passed(message)
    side = "ahead of" if off_s > 0 else "behind"
    return Finding(
        outcome=CheckOutcome.WARNING,
        message=f"Its clock is {format_duration(abs(off_s))} {side} Pitwall's {known}. Jobs do not "
        "need the correct time, but its logs cannot be aligned with others.",
        remedies=remediation.SYNCHRONISE_CLOCKS,
    )


def _measure_clock(transport: Transport, host: Host) -> tuple[float, float]:
    """Return the offset of the clock in seconds, and its uncertainty: half the round trip."""
    before = time.time()
    done = transport.run([host.python, *LEAN, "-c", _TIME], timeout_s=WORD_TIMEOUT_S)
    after = time.time()
    try:
        host_time = float(done.stdout)
    except ValueError as error:
        raise HostSetupError(
            f"the host {host.name} does not report its time: {done.stderr[-200:]!r}"
        ) from error
    return host_time - (before + after) / 2, (after - before) / 2


def _check_idle(host: Host, claim: Claim) -> Finding:
    with open_transport(host, claim) as transport:
        idle = Agent(transport, python=host.python).check_idle()
    reasons = [reason for reason in _iterate_disturbances(idle) if reason]
    if not reasons:
        share = idle.get("foreign_share")
        used = (
            "the CPU use of other processes is unknown"
            if share is None
            else f"other processes use {_format_core_share(share)}"
        )
        return _build_passed(f"Nothing disturbs it: {used}")
    return Finding(
        outcome=CheckOutcome.WARNING,
        message=f"Results of this host will be less stable: {'; '.join(reasons)}",
        remedies=remediation.suggest_quieting(idle),
    )


def _iterate_disturbances(idle: Mapping[str, Any]) -> Iterator[str]:
    """Yield disturbances by the thresholds of the validity of trials."""
    foreign = THRESHOLDS["foreign_process"]
    if foreign.is_broken_by(idle.get("foreign_share")):
        names = [str(each["name"]) for each in idle.get("foreign") or () if each["cpu_s"] > 0.01]
        who = f" ({', '.join(names)})" if names else ""
        yield (
            f"other processes use {_format_core_share(idle['foreign_share'])}{who}, "
            f"expected {foreign.text}"
        )
    if THRESHOLDS["steal"].is_broken_by(idle.get("steal_share")):
        yield (
            f"the hypervisor takes {format_quantity(idle['steal_share'], 'share')} of its CPU time"
        )
    if idle.get("on_battery"):
        yield "it runs on battery"


def _format_core_share(share: float) -> str:
    return format_quantity(max(0.0, share), "cores")


def _build_passed(message: str) -> Finding:
    return Finding(outcome=CheckOutcome.PASSED, message=message)


STEPS: Mapping[CheckStep, Callable[[Host, Claim], Finding]] = MappingProxyType(
    {
        CheckStep.LOGIN: _check_login,
        CheckStep.PYTHON: _check_python,
        CheckStep.AGENT: _check_agent,
        CheckStep.TOOLS: _check_tools,
        CheckStep.CLOCK: _check_clock,
        CheckStep.QUIET: _check_idle,
    }
)
