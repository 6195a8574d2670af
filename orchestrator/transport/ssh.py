"""A transport over SSH, for any POSIX system with an SSH server and SFTP."""

import contextlib
import posixpath
import secrets
import time
from collections.abc import Iterator, Sequence

import paramiko

from orchestrator.core.errors import HostError, HostSetupError, NotFoundError, UnreachableError
from orchestrator.core.spans import span
from orchestrator.core.timers import call_after
from orchestrator.transport.address import HostKey, SshAddress
from orchestrator.transport.base import (
    OUTPUT_LIMIT_BYTES,
    ClosingTransport,
    CommandResult,
    CommandTimedOutError,
    Content,
    Output,
    TooLargeError,
    check_argv,
    check_path,
    iterate_pieces,
    measure_content,
)
from orchestrator.transport.command import (
    DeadlineError,
    build_command_line,
    read_all,
    split_mark,
    stop_line,
)
from orchestrator.transport.connection import open_connection, scan_host_key

__all__ = ["HostKey", "SshAddress", "SshTransport", "scan_host_key"]

_FILE_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 5.0
#: Timeout of the start of SFTP and of the creation of the work directory.
_OPEN_S = 45.0
#: Two streams up to their limit, with room for the headers of many small packets.
_OUTPUT_BYTES = 8 * OUTPUT_LIMIT_BYTES
_DYING_S = 0.5
_FILE_ERRORS = (OSError, EOFError, paramiko.SSHException)


class SshTransport(ClosingTransport):
    """A Transport over one SSH connection, open from construction on.

    The constructor raises the errors of `open_connection`, and HostSetupError if the host offers no
    SFTP or the work directory cannot be created.
    """

    def __init__(self, address: SshAddress, *, connect_timeout_s: float = 10.0) -> None:
        self._address = address
        self._folders: set[str] = set()
        with span("ssh connect", address=address):
            self._connection, self._socket = open_connection(address, timeout_s=connect_timeout_s)
            try:
                with call_after(_OPEN_S, self._connection.close):
                    self._sftp = self._open_sftp()
                    with self._file_errors(f"make the folder {address.work_dir}"):
                        self._make_folders(address.work_dir)
            except BaseException:
                self._connection.close()
                raise

    def run(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        """See Transport.run."""
        argv = check_argv(argv)
        deadline = time.monotonic() + timeout_s
        output = Output()
        line = build_command_line(argv, self._address.work_dir, reads=bool(stdin))
        with (
            span("ssh run", address=self._address),
            self._receiving(_OUTPUT_BYTES),
            contextlib.closing(self._start(line, timeout_s)) as channel,
        ):
            try:
                self._send(channel, stdin)
                status = read_all(channel, output, deadline)
            except DeadlineError as error:
                raise self._timed_out(argv, output, timeout_s) from error
            except HostError:
                self._stop(output)
                raise
        return self._completed(argv, status, output)

    def put(self, content: Content, path: str, *, mode: int = 0o644) -> None:
        """See Transport.put."""
        target = self._resolve_path(path)
        folder, name = posixpath.split(target)
        unfinished = posixpath.join(folder, f".{name}.{secrets.token_hex(4)}.part")
        with (
            span("ssh put", address=self._address, path=path),
            # The host answers each part.
            self._receiving(measure_content(content) // 64),
            self._file_errors(f"write {path}"),
        ):
            self._make_folders(folder)
            try:
                self._write(content, unfinished, mode)
                self._sftp.posix_rename(unfinished, target)
            except BaseException:
                with contextlib.suppress(*_FILE_ERRORS):
                    self._sftp.remove(unfinished)
                raise

    def get(self, path: str, *, limit: int) -> bytes:
        """See Transport.get."""
        with (
            span("ssh get", address=self._address, path=path),
            # Twice the size: if answers arrive faster than paramiko's requests, it requests parts
            # again.
            self._receiving(2 * (limit + limit // 8)),
            self._file_errors(f"read {path}"),
        ):
            try:
                return self._read(self._resolve_path(path), limit)
            except FileNotFoundError as error:
                raise NotFoundError(f"There is no file {path} on {self._address}.") from error

    def is_open(self) -> bool:
        """See Transport.is_open."""
        return self._connection.is_active()

    def close(self) -> None:
        """See Transport.close."""
        self._connection.close()

    @contextlib.contextmanager
    def _receiving(self, count: int) -> Iterator[None]:
        """Accept `count` bytes during the block, and only a few after it."""
        self._socket.allow(count)
        try:
            yield
        finally:
            self._socket.allow(0)

    # Commands

    def _start(self, line: str, timeout_s: float) -> paramiko.Channel:
        try:
            channel = self._connection.open_session(timeout=timeout_s)
            channel.settimeout(timeout_s)
            channel.exec_command(line)
        except _FILE_ERRORS as error:
            raise self._no_session(error) from error
        return channel

    def _send(self, channel: paramiko.Channel, stdin: bytes) -> None:
        """Send the input of a command and end it; DeadlineError if the host takes none."""
        if not stdin:
            return
        try:
            channel.sendall(stdin)
            channel.shutdown_write()
        except TimeoutError as error:
            raise DeadlineError from error
        except _FILE_ERRORS as error:
            # A command that has ended takes no input: its output shows the reason.
            if self._is_lost():
                raise self._lost(error) from error

    def _no_session(self, error: Exception) -> HostError:
        if self._is_lost():
            return self._lost(error)
        return UnreachableError(
            f"{self._address} did not start a command: {error}. It may have too many sessions open "
            "(MaxSessions); try again."
        )

    def _completed(self, argv: Sequence[str], status: int, output: Output) -> CommandResult:
        group, stdout = split_mark(bytes(output.stdout))
        stderr = bytes(output.stderr)
        if status == -1:
            if self._is_lost():
                raise self._lost(f"in the middle of {argv[0]}")
            raise HostError(f"{argv[0]} was killed on {self._address}, together with its shell.")
        if group is None:
            message = (stderr or stdout).decode(errors="replace").strip()[-500:]
            raise HostSetupError(
                f"{self._address} did not run {argv[0]} in {self._address.work_dir} (exit status "
                f"{status}): {message or 'no message'}. It needs a login with a shell."
            )
        return CommandResult(exit_status=status, stdout=stdout, stderr=stderr)

    def _timed_out(self, argv: Sequence[str], output: Output, timeout_s: float) -> HostError:
        if not self._connection.is_active():
            return self._lost(f"in the middle of {argv[0]}")
        self._stop(output)
        return CommandTimedOutError(
            f"{argv[0]} took longer than {timeout_s:g} s on {self._address} and was stopped."
        )

    def _stop(self, output: Output) -> None:
        """End the command's process group: closing its channel would leave it running."""
        group, _ = split_mark(bytes(output.stdout))
        if group is None:
            return
        with contextlib.suppress(HostError, DeadlineError):
            channel = self._start(stop_line(group), _STOP_TIMEOUT_S)
            with contextlib.closing(channel):
                read_all(channel, Output(), time.monotonic() + _STOP_TIMEOUT_S)

    # Files

    def _resolve_path(self, path: str) -> str:
        return posixpath.join(self._address.work_dir, check_path(path))

    def _open_sftp(self) -> paramiko.SFTPClient:
        try:
            channel = self._connection.open_session(timeout=_FILE_TIMEOUT_S)
            channel.settimeout(_FILE_TIMEOUT_S)
            channel.invoke_subsystem("sftp")
            return paramiko.SFTPClient(channel)
        except _FILE_ERRORS as error:
            if self._is_lost():
                raise self._lost(error) from error
            raise HostSetupError(
                f"{self._address} offers no SFTP ({error}). Its sshd_config needs "
                "'Subsystem sftp internal-sftp'."
            ) from error

    def _make_folders(self, folder: str) -> None:
        if folder in ("", "/") or folder in self._folders:
            return
        self._make_folders(posixpath.dirname(folder))
        try:
            self._sftp.stat(folder)
        except FileNotFoundError:
            self._make_folder(folder)
        self._folders.add(folder)

    def _make_folder(self, folder: str) -> None:
        try:
            # Create private folders: other users of the machine must not read the data of jobs.
            self._sftp.mkdir(folder, 0o700)
        except OSError:
            self._sftp.stat(folder)  # another connection was quicker

    def _write(self, content: Content, path: str, mode: int) -> None:
        size = 0
        with self._sftp.open(path, "wb") as file:
            file.set_pipelined(True)
            file.chmod(mode)
            for piece in iterate_pieces(content):
                file.write(piece)
                size += len(piece)
        if self._sftp.stat(path).st_size != size:
            raise OSError("it was not written whole; is the disk full?")

    def _read(self, path: str, limit: int) -> bytes:
        with self._sftp.open(path, "rb") as file:
            size = file.stat().st_size or 0
            if size > limit:
                raise TooLargeError(
                    f"{path} on {self._address} has {size} bytes, more than the {limit} wanted."
                )
            file.prefetch(size)
            return file.read(size)

    # Errors

    @contextlib.contextmanager
    def _file_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except _FILE_ERRORS as error:
            if self._is_lost() or isinstance(error, TimeoutError):
                raise self._lost(error) from error
            raise HostSetupError(
                f"Could not {doing} on {self._address}: {error}. Check the permissions and the "
                "free space there."
            ) from error

    def _is_lost(self) -> bool:
        # A dying connection ends its channels a moment before it reports its own end.
        self._connection.join(_DYING_S)
        return not self._connection.is_active()

    def _lost(self, reason: object) -> UnreachableError:
        if self._socket.is_exceeded:
            reason = "it sent more than it was asked for"
        return UnreachableError(
            f"The connection to {self._address} was lost: {str(reason) or 'the host hung up'}. "
            "Check that the machine is on and try again."
        )
