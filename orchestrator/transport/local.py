"""A transport to the machine that Pitwall runs on."""

import contextlib
import os
import re
import secrets
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from orchestrator.core.errors import HostError, HostSetupError, NotFoundError
from orchestrator.transport.base import (
    ClosingTransport,
    CommandResult,
    CommandTimedOutError,
    Content,
    Output,
    TooLargeError,
    check_argv,
    check_path,
    iterate_pieces,
)

_CHUNK_BYTES = 65536
_GRACE_S = 1.0
#: Environment variables that programs need. The others may contain secrets of this server.
_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH"
    r"|SSL_CERT_FILE|SSL_CERT_DIR"
)


class LocalTransport(ClosingTransport):
    """A Transport to this machine.

    Raises HostSetupError if the work directory cannot be created.
    """

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir
        self._running: subprocess.Popen[bytes] | None = None
        with _translate_file_errors(f"make the folder {work_dir}"):
            work_dir.parent.mkdir(parents=True, exist_ok=True)
            _make_folders(work_dir)

    def run(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        """See Transport.run."""
        argv = check_argv(argv)
        try:
            process = self._start(argv, stdin)
        except OSError as error:
            return _build_not_started(argv, error)
        with process, self._as_running(process):
            try:
                return _wait_for_exit(process, time.monotonic() + timeout_s, stdin)
            except HostError:
                _stop(process)
                raise
            except subprocess.TimeoutExpired as error:
                _stop(process)
                raise CommandTimedOutError(
                    f"{argv[0]} took longer than {timeout_s:g} s on this machine and was stopped."
                ) from error

    def put(self, content: Content, path: str, *, mode: int = 0o644) -> None:
        """See Transport.put."""
        target = self._work_dir / check_path(path)
        unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        with _translate_file_errors(f"write {path}"):
            _make_folders(target.parent)
            try:
                unfinished.touch(mode=0o600)
                unfinished.chmod(mode)
                with unfinished.open("wb") as file:
                    file.writelines(iterate_pieces(content))
                unfinished.replace(target)
            finally:
                unfinished.unlink(missing_ok=True)

    def get(self, path: str, *, limit: int) -> bytes:
        """See Transport.get."""
        with _translate_file_errors(f"read {path}"):
            try:
                return self._read(self._work_dir / check_path(path), limit)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise NotFoundError(f"There is no file {path} on this machine.") from error

    def is_open(self) -> bool:
        """See Transport.is_open."""
        return True

    def close(self) -> None:
        """See Transport.close. It stops a command that another thread waits for."""
        process = self._running
        if process is not None:
            _signal_group(process, signal.SIGKILL)

    @contextlib.contextmanager
    def _as_running(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        self._running = process
        try:
            yield
        finally:
            self._running = None

    def _start(self, argv: Sequence[str], stdin: bytes) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            argv,
            cwd=self._work_dir,
            env=_build_environment(),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def _read(self, path: Path, limit: int) -> bytes:
        # Open without blocking: a pipe, for example, would keep us waiting.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise HostError(f"{path} is not a file.")
            content = file.read(limit + 1)
        if len(content) > limit:
            raise TooLargeError(f"{path} has more than the {limit} bytes wanted.")
        return content


def _build_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}


def _make_folders(folder: Path) -> None:
    """Create private folders: other users of the machine must not read the data of jobs."""
    if not folder.is_dir():
        _make_folders(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _build_not_started(argv: Sequence[str], error: OSError) -> CommandResult:
    status = 127 if isinstance(error, FileNotFoundError) else 126
    message = f"{argv[0]}: {error.strerror}\n"
    return CommandResult(exit_status=status, stdout=b"", stderr=message.encode())


def _wait_for_exit(
    process: subprocess.Popen[bytes], deadline: float, stdin: bytes
) -> CommandResult:
    output = Output()
    _read_all(process, output, deadline, stdin)
    status = process.wait(max(deadline - time.monotonic(), 0))
    return CommandResult(
        exit_status=status if status >= 0 else 128 - status,
        stdout=bytes(output.stdout),
        stderr=bytes(output.stderr),
    )


def _read_all(
    process: subprocess.Popen[bytes], output: Output, deadline: float, stdin: bytes
) -> None:
    """Read both outputs to their ends, and write the input meanwhile."""
    assert process.stdout is not None
    assert process.stderr is not None
    left = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        selector.register(process.stdout, selectors.EVENT_READ, output.stdout)
        selector.register(process.stderr, selectors.EVENT_READ, output.stderr)
        while selector.get_map():
            ready = selector.select(max(deadline - time.monotonic(), 0))
            if not ready:
                raise subprocess.TimeoutExpired(process.args, 0)
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    left = _write_some(key.fd, left)
                    if not left:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                data = os.read(key.fd, _CHUNK_BYTES)
                output.add(key.data, data)
                if not data:
                    selector.unregister(key.fileobj)


def _write_some(fd: int, data: memoryview) -> memoryview:
    """Return what is left to be written; nothing if the program reads no more."""
    try:
        return data[os.write(fd, data) :]
    except BlockingIOError:
        return data
    except OSError:
        return data[:0]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process group: SIGTERM, and SIGKILL a second later."""
    _signal_group(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    _signal_group(process, signal.SIGKILL)


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    # macOS answers EPERM for a group that has only zombies left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@contextlib.contextmanager
def _translate_file_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostSetupError(
            f"Could not {doing} on this machine: {error}. Check the permissions and the free space."
        ) from error
