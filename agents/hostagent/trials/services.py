"""The running processes of a trial: services in order, then the server; stopped in reverse."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import Aborted, TrialFailed, UnderLoad
from ..hosts.all_hosts import AllHosts, AnyProcess
from ..platform.limits import describe_exit
from ..platform.ports import format_host
from ..sandbox.tls_files import get_ca_file
from ..step.plan import SERVER, Server, Service, Trial
from .readiness import NotReady, await_ready

#: Another program may take a port between the kernel's choice and the start of the process.
STARTS = 4
_SERVER_CODES = {
    "ended": "server_did_not_start",
    "wrong": "wrong_answer",
    "silent": "server_not_ready",
}


Prepare = Callable[[str, Mapping[str, str]], None]


class TrialProcesses:
    """The running processes of a trial in the order of their start, and their placeholders.

    `build`: BUILT of protocol.py, once the server runs.
    """

    def __init__(self) -> None:
        self.running: list[AnyProcess] = []
        self.build: Mapping[str, Any] = {}
        self.placeholders: dict[str, str] = {}

    @property
    def server(self) -> AnyProcess:
        return self.running[-1]

    def stop(self) -> None:
        """Stop them, the last one first."""
        for process in reversed(self.running):
            process.stop()

    def check_alive(self) -> None:
        """Raise UnderLoad if a process ended by itself."""
        for process in reversed(self.running):
            code = process.exit_code
            if code is not None:
                kind = "server_died" if process.name == SERVER else "service_died"
                raise UnderLoad(
                    kind,
                    f"{describe_process(process.name)} ended with {describe_exit(code)} under load",
                    process.output(),
                )

    def limits(self) -> dict[str, Any]:
        return {process.name: process.applied for process in self.running}


@contextlib.contextmanager
def run_processes(all_hosts: AllHosts, trial: Trial, prepare: Prepare) -> Iterator[TrialProcesses]:
    """Start all processes of the trial, wait until each is ready, and stop them after the block.

    `prepare` runs the prepare steps after the build, the services and the server.
    When the whole step ends (Aborted), they are not stopped here: `run_round` kills all processes.
    """
    processes = TrialProcesses()
    try:
        prepare("build", {})
        for service in trial.services:
            processes.placeholders.update(_start_service(all_hosts, trial, service, processes))
        prepare("services", processes.placeholders)
        server = _start_until_ready(all_hosts, trial, SERVER, processes.placeholders)
        processes.running.append(server)
        processes.build = all_hosts.check_build(trial, server)
        prepare("server", {**processes.placeholders, "port": str(server.port)})
        yield processes
    except Aborted:
        raise
    except BaseException:
        processes.stop()
        raise
    processes.stop()


def _start_service(
    all_hosts: AllHosts, trial: Trial, service: Service, processes: TrialProcesses
) -> dict[str, str]:
    started = []
    for name in service.process_names:
        started.append(_start_until_ready(all_hosts, trial, name, processes.placeholders))
        processes.running.append(started[-1])
    return _list_placeholders(service.name, started)


def _list_placeholders(name: str, processes: Sequence[AnyProcess]) -> dict[str, str]:
    return {
        f"{name}_host": processes[0].address,
        f"{name}_port": str(processes[0].port),
        f"{name}_addresses": ",".join(
            f"{format_host(process.address)}:{process.port}" for process in processes
        ),
    }


def _start_until_ready(
    all_hosts: AllHosts, trial: Trial, name: str, placeholders: Mapping[str, str]
) -> AnyProcess:
    program = trial.program(name)
    assert isinstance(program, (Server, Service))
    ready = program.ready if isinstance(program, Service) else trial.ready
    for _ in range(STARTS):
        process = all_hosts.start(trial, name, placeholders)
        try:
            ca = get_ca_file(all_hosts.step, all_hosts.plan)
            with all_hosts.on_load_side():
                process.first_answer_s = await_ready(process, ready, all_hosts.heartbeat, ca)
            _check_port(process, fixed=program.port is not None)
            return process
        except NotReady as not_ready:
            output = process.output()
            failure = _explain_failure(process, not_ready, output, fixed=program.port is not None)
            process.stop()
            taken = _reports_port_in_use(output)
        except TrialFailed as port_failure:
            process.stop()
            failure, taken = port_failure, True
        if program.port is not None or not taken:
            break
    raise failure


def _check_port(process: AnyProcess, *, fixed: bool) -> None:
    """Raise TrialFailed if another program listens on the port of this process."""
    process.port_checked = process.has_port
    if process.port_checked is False:
        raise _build_port_failure(process, process.output(), fixed=fixed)


def _build_port_failure(process: AnyProcess, output: str, *, fixed: bool) -> TrialFailed:
    return TrialFailed(
        "port_in_use" if fixed else "internal",
        f"another program than {describe_process(process.name)} listens on port "
        f"{process.port} of {process.address}: both started at the same time; stop the other",
        output,
    )


def _explain_failure(
    process: AnyProcess, not_ready: NotReady, output: str, *, fixed: bool
) -> TrialFailed:
    """Return the failure of a process that runs still, or whose descendants do."""
    if not_ready.reason == "wrong" and process.has_port is False:
        return _build_port_failure(process, output, fixed=fixed)
    code = _SERVER_CODES[not_ready.reason] if process.name == SERVER else "service_not_ready"
    instead = "" if not_ready.reason == "wrong" else process.describe_listening()
    message = f"{describe_process(process.name)} {not_ready}"
    return TrialFailed(code, f"{message}; {instead}" if instead else message, output)


def describe_process(process: str) -> str:
    if process == SERVER:
        return "the server"
    _, name, number = process.split(":")
    return f"service {name} (process {number})"


def _reports_port_in_use(output: str) -> bool:
    return "address already in use" in output.lower() or "eaddrinuse" in output.lower()
