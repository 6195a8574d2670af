"""The interface of all transports, and its values."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from orchestrator.core.errors import HostError, InvalidRequestError

_PIECE_BYTES = 1 << 20
OUTPUT_LIMIT_BYTES = 8 * 1024 * 1024

_PATH = re.compile(r"[A-Za-z0-9._/-]+", re.ASCII)


class CommandTimedOutError(HostError):
    """A command exceeded its timeout and was stopped."""

    transient = True


class TooLargeError(HostError):
    """A file is larger than the limit; a retry does not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """A command that ended. `exit_status` is 0 to 255, as in a shell: 128 + n after signal n."""

    exit_status: int
    stdout: bytes
    stderr: bytes


#: Content to write to a machine: bytes, or an open file of any size.
Content = bytes | BinaryIO


class Transport(Protocol):
    """An open connection to one machine, for one thread at a time; also a context manager.

    Paths are relative to the work directory, which exists once the transport is open. They may
    contain letters, digits, `.`, `_`, `-` and `/` but no `..`; otherwise InvalidRequestError is
    raised. Every verb may raise a HostError, whose `transient` says whether a retry may help.
    """

    def run(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        """Run a program in the work directory, without a terminal, until its output ends.

        `stdin` is its input, of some MiB at most; it is in no command line, file or message.
        A missing program ends with status 127, as in a shell; a status other than 0 is no error
        here. After `timeout_s` the program and its process group are stopped and
        CommandTimedOutError is raised. More than 8 MiB of stdout or of stderr is a HostError.
        """
        ...

    def put(self, content: Content, path: str, *, mode: int = 0o644) -> None:
        """Write a file atomically, replacing an older one, and create its parent folders.

        An open file is read in pieces from its present position to its end.
        """
        ...

    def get(self, path: str, *, limit: int) -> bytes:
        """Return the content of a file of at most `limit` bytes.

        Raise NotFoundError if it does not exist and TooLargeError if it is larger.
        """
        ...

    def is_open(self) -> bool:
        """Return False once the connection is known to be closed; the host is not contacted."""
        ...

    def close(self) -> None:
        """End the connection. Detached commands continue. May be called twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def measure_content(content: Content) -> int:
    """Return the size in bytes; of an open file, the rest from its present position."""
    if isinstance(content, bytes):
        return len(content)
    start = content.tell()
    size = content.seek(0, io.SEEK_END) - start
    content.seek(start)
    return size


def iterate_pieces(content: Content) -> Iterator[bytes]:
    """Yield the content in pieces of at most 1 MiB."""
    source = io.BytesIO(content) if isinstance(content, bytes) else content
    while piece := source.read(_PIECE_BYTES):
        yield piece


class ClosingTransport:
    """The context manager half of a Transport."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Output:
    """Collects the output of a command. Raises HostError as soon as a stream exceeds the limit."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()

    def add(self, stream: bytearray, data: bytes) -> None:
        stream += data
        if len(stream) > OUTPUT_LIMIT_BYTES:
            raise HostError(
                f"The command wrote more than {OUTPUT_LIMIT_BYTES} bytes and was stopped. "
                "Let it write to a file and get that."
            )


def check_path(path: str) -> str:
    """Return the path if it is relative, plain and below the work directory."""
    if path.startswith("/"):
        raise InvalidRequestError(
            f"The path {path!r} is absolute; give it relative to the work directory."
        )
    _check_parts(path, path.split("/"))
    return path


def check_work_dir(path: str) -> str:
    """Return the work directory if it is plain: absolute, or relative to the login's home."""
    _check_parts(path, path.removeprefix("/").split("/"))
    return path


def check_argv(argv: Sequence[str]) -> list[str]:
    """Return the command as a list if a program can be started with it."""
    if isinstance(argv, str) or not argv or not argv[0]:
        raise InvalidRequestError("A command needs a program: a list of its name and arguments.")
    if any("\0" in argument for argument in argv):
        raise InvalidRequestError(f"The command {argv[0]!r} has an argument with a NUL character.")
    return list(argv)


def _check_parts(path: str, parts: Sequence[str]) -> None:
    plain = _PATH.fullmatch(path) and not path.startswith("-")
    if not plain or any(part in ("", ".", "..") for part in parts):
        raise InvalidRequestError(
            f"The path {path!r} is not plain: letters, digits, '.', '_', '-' and single '/' only, "
            "without '..' and not starting with '-'."
        )
