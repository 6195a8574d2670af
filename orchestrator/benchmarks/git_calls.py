"""Calls of git with argument lists, a known environment and limits.

Time, output, files and memory are limited, because git reads untrusted data. git sees no home
folder, no configuration of the machine or its users, no SSH agent and no credential helper: a call
passes everything that git may use.
"""

import contextlib
import functools
import os
import re
import resource
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from orchestrator.core.errors import InvalidRequestError

#: Time limit of all calls except fetches, archives and bundles.
GIT_TIMEOUT_S = 120.0
_PROGRESS_S = 1.0
_LONGEST_LINE = 4096
_LONGEST_MESSAGE = 500
#: Variables that locate programs and the certificates of authorities.
_PASSED_ON = (
    "PATH", "LD_LIBRARY_PATH", "TMPDIR", "GIT_EXEC_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
)  # fmt: skip
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


class GitOutput(NamedTuple):
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
    source: IO[bytes] | None = None,
    target: Sink | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    check: Callable[[], None] | None = None,
) -> GitOutput:
    """Run a program until it ends; its standard output is written to `target`, or returned.

    `source` is the standard input. `on_stderr` gets the data of standard error as it arrives.
    `check` is called about twice a second and ends the program if it raises. Raise TimeoutError or
    TooMuchError if the program exceeded a limit; then it was ended with all processes that it
    started.
    """
    process = subprocess.Popen(
        [*_build_prefix(), *argv], env=dict(environment), start_new_session=True,
        stdin=source or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    output = _Output(most_bytes, target)
    words = _OutputTail(on_stderr)
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
    return GitOutput(status, bytes(output.kept), bytes(words.kept))


@functools.cache
def _build_prefix() -> tuple[str, ...]:
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


class _OutputTail:
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


def call_git(
    *args: str,
    config: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    check: bool = True,
    timeout_s: float = GIT_TIMEOUT_S,
    most_bytes: int = MOST_OUTPUT_BYTES,
    limit: str = "",
    file_bytes: int = MOST_FILE_BYTES,
    source: IO[bytes] | None = None,
    target: Sink | None = None,
    on_progress: Callable[[str], None] | None = None,
    size_check: Callable[[], None] | None = None,
) -> GitOutput:
    """Return a call that ended; with `check`, a failure raises InvalidRequestError.

    `config` are git settings of this call; the environment passes them, which other users of the
    machine cannot read. `on_progress` gets git's progress at most once a second. `limit` names the
    setting that defines `most_bytes`.
    """
    progress = Progress(on_progress) if on_progress else None
    try:
        done = run_bounded(
            ["git", *args], _build_environment(config or {}, variables or {}), timeout_s,
            most_bytes,
            file_bytes=file_bytes, source=source, target=target, check=size_check,
            on_stderr=progress.add if progress else None,
        )  # fmt: skip
    except (TimeoutError, TooMuchError, OSError) as error:
        raise _build_call_error(error, timeout_s, limit) from error
    if check and done.returncode:
        raise build_git_error(done)
    return done


def _build_environment(config: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        # Not the home of the account: git and curl look for files there.
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        # The mirror of a path may belong to another user of this machine.
        **_as_variables({"safe.directory": "*", **config}),
        **variables,
    }


def _build_call_error(error: Exception, timeout_s: float, limit: str) -> InvalidRequestError:
    """Return the error of a call that was ended or did not start."""
    if isinstance(error, TimeoutError):
        return InvalidRequestError(
            f"git did not finish within {timeout_s:g} s; is the repository's server reachable?"
        )
    if isinstance(error, TooMuchError):
        advice = f"; your administrator can raise {limit}" if limit else ""
        return InvalidRequestError(f"{error}{advice}")
    words = error.strerror if isinstance(error, OSError) else ""
    return InvalidRequestError(f"git failed on the server of Pitwall: {words or error}")


def build_git_error(done: GitOutput, *more: str) -> InvalidRequestError:
    """Return the error of a failed call: git's message and additional facts."""
    words = "; ".join((extract_git_message(done.stderr), *filter(None, more)))
    return InvalidRequestError(f"git cannot read the repository: {words}")


def extract_git_message(stderr: bytes) -> str:
    """Return the end of git's output in one line, without overwritten progress lines."""
    lines = (line.rstrip(b"\r").rpartition(b"\r")[2] for line in stderr.rstrip().split(b"\n"))
    text = " ".join(_format_line(line) for line in lines if line.strip())
    return text[-_LONGEST_MESSAGE:] or "no reason given"


class Progress:
    """Splits git's terminal output into lines, and reports the newest once a second."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report, self._rest, self._next_at = report, b"", 0.0

    def add(self, data: bytes) -> None:
        *lines, rest = re.split(rb"[\r\n]", self._rest + data)
        self._rest = rest[-_LONGEST_LINE:]
        shown = [text for text in map(_format_line, lines) if text]
        now = time.monotonic()
        if shown and now >= self._next_at:
            self._next_at = now + _PROGRESS_S
            self._report(shown[-1])


def _format_line(line: bytes) -> str:
    text = line[-_LONGEST_LINE:].decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in text).strip()[:200]


def _as_variables(config: Mapping[str, str]) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(config))}
    for number, (name, value) in enumerate(config.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def is_repository(folder: Path) -> bool:
    return (folder / "HEAD").exists()
