"""The running parts of a trial: services in their order, then the server; ended in reverse."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import Aborted, TrialFailed, UnderLoad
from ..hosts.all_hosts import AnyPart, Stage
from ..platform.limits import ended_with
from ..platform.ports import in_url
from ..sandbox.tls_files import authority
from ..step.plan import SERVER, Service, Trial
from .readiness import NotReady, await_ready

#: A kernel's port may be taken by another between its choice and the start.
STARTS = 4
_SERVER_CODES = {
    "ended": "server_did_not_start",
    "wrong": "wrong_answer",
    "silent": "server_not_ready",
}


class Running:
    """The parts of a trial that run, in the order of their start, and the words for them."""

    def __init__(self) -> None:
        self.parts: list[AnyPart] = []
        self.words: dict[str, str] = {}

    @property
    def server(self) -> AnyPart:
        return self.parts[-1]

    def stop(self) -> None:
        """End them, the last one first."""
        for part in reversed(self.parts):
            part.stop()

    def check_alive(self) -> None:
        """UnderLoad where a part ended by itself."""
        for part in reversed(self.parts):
            code = part.exit_code
            if code is not None:
                kind = "server_died" if part.name == SERVER else "service_died"
                raise UnderLoad(
                    kind,
                    f"{described(part.name)} ended with {ended_with(code)} under load",
                    part.output(),
                )

    def limits(self) -> dict[str, Any]:
        return {part.name: part.applied for part in self.parts}


@contextlib.contextmanager
def running(stage: Stage, trial: Trial) -> Iterator[Running]:
    """All parts of the trial, each ready; gone afterwards.

    Where the whole step ends, their end is left to those who kill all that it started.
    """
    parts = Running()
    try:
        for service in trial.services:
            parts.words.update(_start_service(stage, trial, service, parts))
        parts.parts.append(_start_ready(stage, trial, SERVER, parts.words))
        yield parts
    except Aborted:
        raise
    except BaseException:
        parts.stop()
        raise
    parts.stop()


def _start_service(stage: Stage, trial: Trial, service: Service, parts: Running) -> dict[str, str]:
    started = []
    for name in service.parts:
        started.append(_start_ready(stage, trial, name, parts.words))
        parts.parts.append(started[-1])
    return _words(service.name, started)


def _words(name: str, parts: Sequence[AnyPart]) -> dict[str, str]:
    return {
        f"{name}_host": parts[0].address,
        f"{name}_port": str(parts[0].port),
        f"{name}_addresses": ",".join(f"{in_url(part.address)}:{part.port}" for part in parts),
    }


def _start_ready(stage: Stage, trial: Trial, name: str, words: Mapping[str, str]) -> AnyPart:
    program = trial.program(name)
    assert program is not None
    ready = program.ready if isinstance(program, Service) else trial.ready
    for _ in range(STARTS):
        part = stage.start(trial, name, words)
        try:
            await_ready(part, ready, stage.beat, authority(stage.step, stage.plan))
            _check_port(part, fixed=program.port is not None)
            return part
        except NotReady as not_ready:
            output = part.output()
            part.stop()
            failure, taken = _failure(name, not_ready, output), _says_port_in_use(output)
        except TrialFailed as not_ours:
            part.stop()
            failure, taken = not_ours, True
        if program.port is not None or not taken:
            break
    raise failure


def _check_port(part: AnyPart, *, fixed: bool) -> None:
    """TrialFailed where another program answers at the port of this part."""
    part.port_checked = part.has_port
    if part.port_checked is False:
        raise TrialFailed(
            "port_in_use" if fixed else "internal",
            f"another program than {described(part.name)} answers at port {part.port} of "
            f"{part.address}: the two started at the same time; stop what holds the port",
            part.output(),
        )


def _failure(name: str, not_ready: NotReady, output: str) -> TrialFailed:
    code = _SERVER_CODES[not_ready.why] if name == SERVER else "service_not_ready"
    return TrialFailed(code, f"{described(name)} {not_ready}", output)


def described(part: str) -> str:
    if part == SERVER:
        return "the server"
    _, name, number = part.split(":")
    return f"service {name} (process {number})"


def _says_port_in_use(output: str) -> bool:
    return "address already in use" in output.lower() or "eaddrinuse" in output.lower()
