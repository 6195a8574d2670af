"""The server under test: a free port, its start, the answer that shows that it serves, its end."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Optional

from .errors import TrialFailed
from .files import tail_text
from .paths import StepDir, tree_dir
from .plan import Ready, Trial
from .processes import Child, environment
from .proctable import HAS_PROC
from .words import replace

HOST = "127.0.0.1"
STARTS = 2
GRACE_S = 5.0
POLL_S = 0.02
_ANSWER_TIMEOUT_S = 5.0
_BODY_LIMIT = 1 << 20


class Server:
    """A running server under test and the port that it was given."""

    def __init__(self, child: Child, port: int, argv: list[str], log: Path) -> None:
        self.child = child
        self.port = port
        self.argv = argv
        self._log = log

    def output(self) -> str:
        return tail_text(self._log)

    def stop(self) -> None:
        self.child.stop(GRACE_S)


@contextlib.contextmanager
def serving(step: StepDir, trial: Trial, words: Mapping[str, str]) -> Iterator[Server]:
    """The trial's server, ready; whatever happens, its whole tree is gone afterwards."""
    server = _start_ready(step, trial, words)
    try:
        yield server
    finally:
        server.stop()


def check_answer(port: int, ready: Ready) -> Optional[str]:
    """None if the server answers as the plan expects; else what came instead."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_ANSWER_TIMEOUT_S)
    try:
        connection.request("GET", ready.path, headers={"Accept-Encoding": "identity"})
        response = connection.getresponse()
        body = response.read(_BODY_LIMIT).decode("utf-8", "replace")
    finally:
        connection.close()
    if response.status != ready.status:
        return f"status {response.status} instead of {ready.status} for GET {ready.path}"
    if ready.body is not None and body != ready.body:
        return f"body {body[:200]!r} instead of {ready.body[:200]!r} for GET {ready.path}"
    return None


def _start_ready(step: StepDir, trial: Trial, words: Mapping[str, str]) -> Server:
    for attempt in range(1, STARTS + 1):
        server = _start(step, trial, words)
        try:
            _await_ready(server, trial.ready)
        except TrialFailed as failed:
            server.child.kill()
            last = attempt == STARTS or trial.server.port is not None
            if last or not _says_port_in_use(failed.output):
                raise
        except BaseException:
            server.child.kill()
            raise
        else:
            return server
    raise AssertionError("unreachable")


def _says_port_in_use(output: str) -> bool:
    return "address already in use" in output.lower() or "eaddrinuse" in output.lower()


def _start(step: StepDir, trial: Trial, words: Mapping[str, str]) -> Server:
    port = _port(trial.server.port)
    named = {**words, "port": str(port)}
    argv = replace(trial.server.argv, named)
    extra = {key: replace([value], named)[0] for key, value in trial.server.env.items()}
    log = step.trial(trial.id) / "server.log"
    with open(log, "wb") as output:
        try:
            child = Child(
                argv,
                cwd=tree_dir(step.root, trial.tree),
                env=environment(step.path, extra),
                stdout=output,
                stderr=output,
                cpus=trial.server.cpus,
            )
        except OSError as error:
            raise TrialFailed(
                "server_did_not_start", f"{argv[0]!r} cannot be started: {error}"
            ) from error
    return Server(child, port, argv, log)


def _port(wanted: Optional[int]) -> int:
    """A port that is free now; the plan's own one must be."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted or 0))
        except OSError as error:
            raise TrialFailed(
                "port_in_use",
                f"port {wanted} of {HOST} is taken{_holder(wanted or 0)} ({error.strerror}); stop "
                "what holds it, or leave the port out of the definition so that one is chosen",
            ) from error
        return int(probe.getsockname()[1])


def _holder(port: int) -> str:
    """Who listens there, as ` by NAME (pid N)`, where the system tells; else nothing."""
    if not HAS_PROC:
        return ""
    inodes = _listening_inodes(port)
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            links = {str(link.readlink()) for link in (entry / "fd").iterdir()}
            if links & inodes:
                return f" by {(entry / 'comm').read_text().strip()} (pid {entry.name})"
    return ""


def _listening_inodes(port: int) -> set[str]:
    lines: list[str] = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            lines += Path("/proc/net", name).read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return {
        f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")
    }


def _await_ready(server: Server, ready: Ready) -> None:
    deadline = time.monotonic() + ready.timeout_s
    wrong: Optional[str] = None
    while time.monotonic() < deadline:
        code = server.child.exit_code
        if code is not None:
            raise TrialFailed(
                "server_did_not_start",
                f"the server ended with {code} before it answered; its output follows",
                server.output(),
            )
        try:
            wrong = check_answer(server.port, ready)
        except (OSError, http.client.HTTPException):
            time.sleep(POLL_S)
            continue
        if wrong is None:
            return
        time.sleep(POLL_S)
    if wrong is not None:
        raise TrialFailed("wrong_answer", f"the server answers {wrong}", server.output())
    raise TrialFailed(
        "server_not_ready",
        f"the server did not answer GET {ready.path} on port {server.port} within "
        f"{ready.timeout_s:g} s",
        server.output(),
    )
