"""A load without Pitwall: server and tool pinned by taskset, and the output of the tool.

Each has a separate session, as in two terminals. Kernels with autogroups distribute the CPUs by
session, which on a busy machine made ghz a third slower or faster.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

from devstack.processes import die_with_parent
from perf.fidelity.extent import Extent
from perf.fidelity.loads import Load, build_files
from perf.fidelity.target import Target
from perf.fidelity.tool_output import Figures, PrintedValues

READY_S = 10.0
#: Time for a tool to connect, to wait for its last answer and to write its report.
GRACE_S = 30.0


class DirectRunError(Exception):
    """A server or a tool failed; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedCpus:
    """The CPUs of the server and of the tool."""

    server: tuple[int, ...]
    tool: tuple[int, ...]


def run_directly(
    load: Load, program: Path, target: Target, extent: Extent, pinned: PinnedCpus, folder: Path
) -> Figures:
    """Start the server, warm it up, measure, and read the output of the tool."""
    with tempfile.TemporaryDirectory(dir=folder) as name, _serving(target, pinned) as port:
        here = Path(name)
        for file, text in build_files(load).items():
            (here / file).write_text(text)
        words = {
            "tool": str(program),
            "port": str(port),
            "tree": str(target.repository),
            "trial_dir": name,
            "out": str(here / "out"),
            "rows": str(here / "rows"),
        }
        if extent.warmup_s:
            _run(load, words, pinned, here, extent.warmup_s)
            for left in ("out", "rows"):
                (here / left).unlink(missing_ok=True)
        return load.printed(_run(load, words, pinned, here, extent.duration_s))


def _run(
    load: Load, words: Mapping[str, str], pinned: PinnedCpus, here: Path, seconds: float
) -> PrintedValues:
    times = {"ms": f"{seconds * 1000:.0f}", "s": f"{seconds:.0f}"}
    argv = [_fill_command(word, {**words, **times}) for word in load.typed]
    try:
        done = subprocess.run(
            [*_pin(pinned.tool), *argv],
            cwd=here,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds + GRACE_S,
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGKILL),
        )
    except subprocess.TimeoutExpired as error:
        raise DirectRunError(f"{load.tool} did not end by itself: {argv}") from error
    if done.returncode != 0:
        raise DirectRunError(f"{load.tool} ended with {done.returncode}: {done.stderr[-1000:]}")
    return PrintedValues(
        out=here / "out", rows=here / "rows", stdout=done.stdout, duration_s=seconds
    )


def _fill_command(word: str, words: Mapping[str, str]) -> str:
    for name, text in words.items():
        word = word.replace(f"{{{name}}}", text)
    return word


def _pin(cpus: Sequence[int]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, cpus))]


@contextmanager
def _serving(target: Target, pinned: PinnedCpus) -> Iterator[int]:
    """Yield the port of a server that answers; stop it at the end."""
    port = _free_port()
    server = subprocess.Popen(
        [*_pin(pinned.server), *target.argv(str(port))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGKILL),
    )
    try:
        _await(server, port)
        yield port
    finally:
        server.kill()
        server.wait()


def _await(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + READY_S
    while not _answers(port):
        if server.poll() is not None or time.monotonic() > deadline:
            raise DirectRunError(f"the server does not answer on port {port}; exit {server.poll()}")
        time.sleep(0.01)


def _answers(port: int) -> bool:
    asking = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        asking.request("GET", "/hello")
        return asking.getresponse().status == 200
    except OSError:
        return False
    finally:
        asking.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
