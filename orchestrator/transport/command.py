"""A command as text for the shell of the other side, and what it sends back."""

import re
import selectors
import shlex
import time
from collections.abc import Sequence

import paramiko

from orchestrator.transport.base import Output

_CHUNK_BYTES = 65536
_MARK = "pitwall-pid"
_MARK_LINE = re.compile(rb"(?:^|\n)" + _MARK.encode() + rb" (\d+)\n")


class DeadlineError(Exception):
    """The command has not ended in time."""


def command_line(argv: Sequence[str], work_dir: str) -> str:
    """The line that runs `argv` in `work_dir`, whatever the login shell is.

    It first prints the process group, so that we can stop it, and so that what the login shell's
    start-up files print before is told apart. The shell stays, so that a signal becomes a status.
    """
    script = (
        f'cd {shlex.quote(work_dir)} && echo "{_MARK} $$" && {shlex.join(argv)} </dev/null; exit $?'
    )
    return f"exec /bin/sh -c {shlex.quote(script)}"


def stop_line(group: int) -> str:
    """The line that ends a process group: politely, and a second later for certain."""
    stop = f"kill -TERM -{group}; sleep 1; kill -KILL -{group}"
    return f"exec /bin/sh -c {shlex.quote(stop)}"


def split_mark(stdout: bytes) -> tuple[int | None, bytes]:
    """The process group (None if the command never started) and the command's own stdout."""
    match = _MARK_LINE.search(stdout)
    return (int(match[1]), stdout[match.end() :]) if match else (None, stdout)


def read_all(channel: paramiko.Channel, output: Output, deadline: float) -> int:
    """Read both streams to their ends, in step, and return the exit status, -1 if unknown.

    Raises DeadlineError at `deadline` (monotonic seconds), with what came until then in `output`.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(channel.fileno(), selectors.EVENT_READ)
        ended = False
        while not ended:
            if not selector.select(max(deadline - time.monotonic(), 0)):
                raise DeadlineError
            # Looked at before the buffers: what arrives after the look is read in the next turn.
            ended = bool(channel.eof_received or channel.closed)
            _drain(channel, output)
    if not channel.status_event.wait(max(deadline - time.monotonic(), 0)):
        raise DeadlineError
    return channel.recv_exit_status()


def _drain(channel: paramiko.Channel, output: Output) -> None:
    while channel.recv_ready():
        output.add(output.stdout, channel.recv(_CHUNK_BYTES))
    while channel.recv_stderr_ready():
        output.add(output.stderr, channel.recv_stderr(_CHUNK_BYTES))
