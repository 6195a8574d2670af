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
from orchestrator.dispatch.unsupported_cases import ENFORCED_LIMITS
from orchestrator.fleet.checks import Finding
from orchestrator.fleet.connect import build_ssh_address, get_local_work_dir
from orchestrator.fleet.host_variables import list_folders
from orchestrator.fleet.identities import find_same_machine, is_same_boot, shares_work_dir
from orchestrator.fleet.models import CheckOutcome, CheckStep, Host, HostTransport
from orchestrator.fleet.reservations import record_reported
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
#: The time in which a host ends the processes of a connection that has ended.
DISCONNECTED_S = 1.0
#: With fewer, a load of many connections fails; OPEN_FILES of the agent.
OPEN_FILES = 65_536
#: Each new connection uses a port for a minute after its end. Linux has 28,232 by default.
LOCAL_PORTS = 20_000
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
        report = agent.facts(list_folders(host.env))
        refusal = _check_user(host, agent)
        if host.transport == HostTransport.SSH:
            agent.begin_outliving()
    if same := _check_identity(host, report.facts):
        return same
    if report.facts.get("work_dir_noexec"):
        return Finding(
            outcome=CheckOutcome.FAILED,
            message=f"no program can be started in the work directory {host.work_dir}: its file "
            "system is mounted with noexec. Builds and load tools are started there.",
            remedies=remediation.EXECUTABLE_WORK_DIR,
        )
    record_snapshot(host=host, facts=report.facts)
    record_reported(host, report.reservation)
    if host.transport == HostTransport.SSH:
        refusal = _check_survival(host, claim) or refusal
    if refusal is not None:
        return refusal
    message = f"It is unpacked below {host.work_dir} and answers: {_describe_machine(report.facts)}"
    return _build_passed(f"{message}. {_describe_user(host)}")


def _check_survival(host: Host, claim: Claim) -> Finding | None:
    """Return a failure if a detached process has ended with the connection that started it."""
    time.sleep(DISCONNECTED_S)
    with open_transport(host, claim) as transport:
        if Agent(transport, python=host.python).end_outliving():
            return None
    return Finding(
        outcome=CheckOutcome.FAILED,
        message=f"{host.name} ends all processes of {host.login} when a connection ends. The agent "
        "has to continue without one.",
        remedies=remediation.suggest_lingering(host),
    )


def _check_identity(host: Host, facts: Mapping[str, Any]) -> Finding | None:
    """Return a failure if the machine, or its work directory, belongs to another host.

    The message names no host of another team.
    """
    other = find_same_machine(host, facts)
    if other is not None:
        return Finding(
            outcome=CheckOutcome.FAILED,
            message=f"this machine is already the host {other.name} of this team: use that one, "
            "or retire it first. One machine is one host, so that its jobs do not disturb each "
            "other.",
            remedies=() if is_same_boot(other, facts) else remediation.NEW_MACHINE_ID,
            other_host=other,
        )
    if shares_work_dir(host, facts):
        return Finding(
            outcome=CheckOutcome.FAILED,
            message=f"the work directory {host.work_dir} is in use: another host of Pitwall has "
            "the same one. Each host needs a separate login or work directory.",
            remedies=remediation.OTHER_WORK_DIR,
        )
    return None


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


def _check_limits(host: Host, _: Claim) -> Finding:
    """Check what `pitwall host setup` installs, in the facts of the step before."""
    snapshot = find_latest_snapshot(host)
    facts = snapshot.facts if snapshot else {}
    problems = list(_iterate_setup_problems(host, facts))
    if problems:
        return Finding(
            outcome=CheckOutcome.WARNING,
            message=f"{'; '.join(problems)}. {_describe_network(facts)}",
            remedies=remediation.suggest_host_setup(host),
        )
    tunable = ", ".join(facts.get("tuning_available") or ()) or "no settings"
    return _build_passed(
        f"Control groups ({facts.get('limits_mechanism')}) enforce all limits of definitions. It "
        f"allows {facts.get('limits_open_files') or 'any number of'} open files. Tuning may change "
        f"{tunable}. {_describe_network(facts)}"
    )


def _describe_network(facts: Mapping[str, Any]) -> str:
    """Describe what definitions with an emulated network can ask for."""
    available = ", ".join(facts.get("network_available") or ())
    problem = facts.get("network_problem")
    if not available:
        return f"It emulates no network: {problem or 'the reason is unknown'}"
    return f"It emulates the {available} of a network" + (f"; {problem}" if problem else "")


def _iterate_setup_problems(host: Host, facts: Mapping[str, Any]) -> Iterator[str]:
    available = facts.get("limits_available") or ()
    missing = [name for name in ENFORCED_LIMITS if name not in available]
    if missing:
        names = " and ".join(ENFORCED_LIMITS[name] for name in missing)
        why = facts.get("limits_problem") or "its system has no control groups"
        yield f"cases that limit {names} are unsupported here: {why}"
    open_files = facts.get("limits_open_files")
    if open_files is not None and open_files < OPEN_FILES:
        yield f"processes may open only {open_files:,} files, fewer than the usual {OPEN_FILES:,}"
    ports = facts.get("local_ports")
    if ports is not None and ports < LOCAL_PORTS:
        yield (
            f"a load with new connections uses up the {ports:,} local ports: set "
            "net.ipv4.ip_local_port_range to its usual 32768 60999"
        )
    refused = sorted(set(host.tuning) - set(facts.get("tuning_available") or ()))
    if refused:
        yield f"{host.login or 'the user of the workers'} may not change {', '.join(refused)}"


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
        CheckStep.LIMITS: _check_limits,
        CheckStep.TOOLS: _check_tools,
        CheckStep.CLOCK: _check_clock,
        CheckStep.QUIET: _check_idle,
    }
)
