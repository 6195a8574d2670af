"""Run git with limits on output, files, memory and time, because it reads untrusted data."""

import contextlib
import functools
import os
import resource
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple, Protocol

#: Limit of a list or a file that is kept in memory; larger data is written to a file.
MOST_OUTPUT_BYTES = 256 << 20
#: Default limit of one file that the program writes.
MOST_FILE_BYTES = 16 << 30
#: Limit of one program, without the files that it maps for reading: a hostile pack determines how
#: much memory git needs.
MOST_MEMORY_BYTES = 4 << 30
_MOST_WORDS = 1 << 16
_CHUNK_BYTES = 1 << 16
#: How often the time limit and `check` are checked while the program is silent.
_CHECK_S = 0.5
_PROBE_S = 10.0


class Completed(NamedTuple):
    """`stdout` is empty if it was written to a target; `stderr` is its end."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Sink(Protocol):
    """A target for the output, such as a file."""

    def write(self, data: bytes, /) -> object: ...


class TooMuchError(Exception):
    """The program wrote more than its limit and was ended."""


def run_bounded(
    argv: Sequence[str],
    environment: Mapping[str, str],
    timeout_s: float,
    most_bytes: int = MOST_OUTPUT_BYTES,
    *,
    file_bytes: int = MOST_FILE_BYTES,
    target: Sink | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    check: Callable[[], None] | None = None,
) -> Completed:
    """Run a program until it ends; its standard output is written to `target`, or returned.

    `on_stderr` gets the data of standard error as it arrives. `check` is called about twice a
    second and ends the program if it raises. Raise TimeoutError or TooMuchError if the program
    exceeded a limit; then it was ended with all processes that it started.
    """
    process = subprocess.Popen(
        [*_prefix(), *argv], env=dict(environment), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    output = _Output(most_bytes, target)
    words = _Words(on_stderr)
    try:
        _limit(process, file_bytes)
        deadline = time.monotonic() + timeout_s
        sinks = {process.stdout: output.add, process.stderr: words.add}
        _follow(sinks, deadline, check or (lambda: None))
        status = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        _end(process)
        process.stdout.close()
        process.stderr.close()
    return Completed(status, bytes(output.kept), bytes(words.kept))


@functools.cache
def _prefix() -> tuple[str, ...]:
    """Return the command that ends a program with this process on Linux, even after SIGKILL.

    Processes that the program started end when their pipes close. The prefix is empty if `setpriv`
    is missing or does not support it, as that of BusyBox. `preexec_fn` is unsafe in a process with
    threads.
    """
    path = shutil.which("setpriv")
    if path is None:
        return ()
    words = (path, "--pdeathsig", "KILL")
    try:
        done = subprocess.run([*words, "true"], capture_output=True, timeout=_PROBE_S)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return () if done.returncode else words


class _Output:
    def __init__(self, most_bytes: int, target: Sink | None) -> None:
        self.kept = bytearray()
        self._most, self._target, self._bytes = most_bytes, target, 0

    def add(self, data: bytes) -> None:
        self._bytes += len(data)
        if self._bytes > self._most:
            raise TooMuchError(f"git returned more than {self._most >> 20} MiB at once")
        if self._target is None:
            self.kept += data
        else:
            self._target.write(data)


class _Words:
    def __init__(self, on_stderr: Callable[[bytes], None] | None) -> None:
        self.kept = bytearray()
        self._on_stderr = on_stderr

    def add(self, data: bytes) -> None:
        self.kept += data
        del self.kept[:-_MOST_WORDS]
        if self._on_stderr is not None:
            self._on_stderr(data)


def _follow(
    sinks: Mapping[IO[bytes], Callable[[bytes], None]], deadline: float, check: Callable[[], None]
) -> None:
    """Pass on what the program writes until it has closed both streams."""
    with selectors.DefaultSelector() as selector:
        for stream, add in sinks.items():
            selector.register(stream, selectors.EVENT_READ, add)
        next_check = 0.0
        while selector.get_map():
            if time.monotonic() > deadline:
                raise TimeoutError
            for key, _ in selector.select(_CHECK_S):
                data = os.read(key.fd, _CHUNK_BYTES)
                if data:
                    key.data(data)
                else:
                    selector.unregister(key.fileobj)
            if time.monotonic() >= next_check:
                check()
                next_check = time.monotonic() + _CHECK_S


def _limit(process: "subprocess.Popen[bytes]", file_bytes: int) -> None:
    if hasattr(resource, "prlimit"):  # Linux; the program has started no other one yet.
        limits = {resource.RLIMIT_FSIZE: file_bytes, resource.RLIMIT_DATA: MOST_MEMORY_BYTES}
        with contextlib.suppress(ProcessLookupError):
            for limit, most in limits.items():
                resource.prlimit(process.pid, limit, (most, most))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the program with its session. It is not reaped yet, so its process id is valid."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
