"""A program whose output, files and time are bounded: git, which reads what anybody pushed."""

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

#: Of a list or a file that is kept in memory; larger things go to a file.
MOST_OUTPUT_BYTES = 256 << 20
#: Of one file that it writes, where no smaller limit is given.
MOST_FILE_BYTES = 16 << 30
#: Of one program, without the files that it maps to read them: a hostile pack says how much
#: memory it needs.
MOST_MEMORY_BYTES = 4 << 30
_MOST_WORDS = 1 << 16
_CHUNK_BYTES = 1 << 16
#: How often the time limit and `check` are looked at while the program is silent.
_CHECK_S = 0.5
_PROBE_S = 10.0


class Completed(NamedTuple):
    """`stdout` is empty where it went to a file; `stderr` is the end of it."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Sink(Protocol):
    """What takes the output as it comes, such as a file."""

    def write(self, data: bytes, /) -> object: ...


class TooMuchError(Exception):
    """It wrote more than there is room for; it was ended."""


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
    """Run a program to its end; its standard output goes to `target`, or is returned.

    `on_stderr` gets what it writes there as it comes. `check` is called about twice a second and
    ends the program by raising. TimeoutError or TooMuchError where the program had to be ended,
    with all that it started.
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
    """What ends a program with ours on Linux, also where that is killed; what the program started
    ends with its pipes. Empty where `setpriv` is missing or, as that of BusyBox, cannot do it.

    Not by `preexec_fn`, which is unsafe in a process with threads.
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
    """Hands on what the program writes until it has closed both streams."""
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
    if hasattr(resource, "prlimit"):  # Linux; the program starts nothing so soon.
        limits = {resource.RLIMIT_FSIZE: file_bytes, resource.RLIMIT_DATA: MOST_MEMORY_BYTES}
        with contextlib.suppress(ProcessLookupError):
            for limit, most in limits.items():
                resource.prlimit(process.pid, limit, (most, most))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """With its session; it is not collected before, so its number is still its own."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
