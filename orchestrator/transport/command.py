"""Commands as text for the remote shell, and their output."""

import re
import selectors
import shlex
import string
import time
from collections.abc import Sequence

import paramiko

from orchestrator.transport.base import Output

_CHUNK_BYTES = 65536
_MARK = "pitwall-pid"
#: Characters without a meaning within quotes, in all shells.
_PLAIN = frozenset(f"{string.ascii_letters}{string.digits} _@%+=:,./;&|<>-".encode())
_MARK_LINE = re.compile(rb"(?:^|\n)" + _MARK.encode() + rb" (\d+)\n")


class DeadlineError(Exception):
    """The command did not end in time."""


def build_command_line(argv: Sequence[str], work_dir: str, *, reads: bool = False) -> str:
    """Return the line that runs `argv` in `work_dir`, for any login shell.

    With `reads` the command reads the input of the shell, otherwise it has none.
    It first prints the process group, so that the command can be stopped. This mark also separates
    the output from that of the login shell's start-up files. The shell stays, so that a signal
    becomes a status.
    """
    source = "" if reads else " </dev/null"
    script = (
        f'cd {shlex.quote(work_dir)} && echo "{_MARK} $$" && {shlex.join(argv)}{source}; exit $?'
    )
    return _wrap(script)


def stop_line(group: int) -> str:
    """Return the line that ends a process group: SIGTERM, and SIGKILL a second later."""
    stop = f"kill -TERM -{group}; sleep 1; kill -KILL -{group}"
    return _wrap(stop)


def _wrap(script: str) -> str:
    """Return the line that runs a script of /bin/sh, for any login shell.

    Shells differ in what a quote, a backslash, an exclamation mark and a new line mean within
    quotes (csh, fish). So the line has none of the script's: they are sent as octal numbers.
    """
    plain = "".join(map(_encode, script.encode()))
    return f'exec /bin/sh -c \'eval "$(printf %b "{plain}")"\''


def _encode(byte: int) -> str:
    return chr(byte) if byte in _PLAIN else f"\\0{byte:03o}"


def split_mark(stdout: bytes) -> tuple[int | None, bytes]:
    """Return the process group (None if the command never started) and the command's own stdout."""
    match = _MARK_LINE.search(stdout)
    return (int(match[1]), stdout[match.end() :]) if match else (None, stdout)


def read_all(channel: paramiko.Channel, output: Output, deadline: float) -> int:
    """Read both streams to their ends and return the exit status, -1 if unknown.

    Raise DeadlineError at `deadline` (monotonic seconds); `output` then has what arrived before.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(channel.fileno(), selectors.EVENT_READ)
        ended = False
        while not ended:
            if not selector.select(max(deadline - time.monotonic(), 0)):
                raise DeadlineError
            # Check this before the buffers: data that arrives after the check is read in the next
            # turn.
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
