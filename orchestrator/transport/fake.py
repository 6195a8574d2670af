"""A machine in memory, for tests."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.core.errors import HostError, NotFoundError
from orchestrator.transport.base import (
    ClosingTransport,
    CommandResult,
    Content,
    TooLargeError,
    check_argv,
    check_path,
    iterate_pieces,
)

Answer = CommandResult | HostError


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a verb: `what` is the command, or the path alone."""

    verb: str
    what: tuple[str, ...]


class FakeTransport(ClosingTransport):
    """A Transport with prepared answers.

    `files` maps paths to contents, `modes` paths to modes; `calls` lists all calls in order. While
    `failure` is set, every verb but close raises it.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.modes: dict[str, int] = {}
        self.calls: list[Call] = []
        self.closed = False
        self.failure: HostError | None = None
        self._answers: list[tuple[tuple[str, ...], list[Answer]]] = []

    def answer(self, start: Sequence[str], *answers: Answer) -> None:
        """Answer commands that start with `start`, in turn; the last answer repeats.

        If several prefixes fit, the one given last wins.
        """
        self._answers.insert(0, (tuple(start), list(answers)))

    def run(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        """Return the next answer for this command. Raise AssertionError if there is none."""
        command = tuple(check_argv(argv))
        self._note("run", *command)
        answer = self._next_answer(command)
        if isinstance(answer, HostError):
            raise answer
        return answer

    def put(self, content: Content, path: str, *, mode: int = 0o644) -> None:
        """Keep the content and the mode."""
        self._note("put", check_path(path))
        self.files[path] = b"".join(iterate_pieces(content))
        self.modes[path] = mode

    def get(self, path: str, *, limit: int) -> bytes:
        """Return the content that was put or that the test added to `files`."""
        self._note("get", check_path(path))
        if path not in self.files:
            raise NotFoundError(f"There is no file {path} on the fake host.")
        if len(self.files[path]) > limit:
            raise TooLargeError(f"{path} has more than the {limit} bytes wanted.")
        return self.files[path]

    def is_open(self) -> bool:
        """Return True until it was closed."""
        return not self.closed

    def close(self) -> None:
        """Remember it in `closed`."""
        self.closed = True

    def _note(self, verb: str, *what: str) -> None:
        assert not self.closed, f"{verb} {what} after close"
        self.calls.append(Call(verb=verb, what=what))
        if self.failure is not None:
            raise self.failure

    def _next_answer(self, command: tuple[str, ...]) -> Answer:
        for start, answers in self._answers:
            if command[: len(start)] == start:
                return answers.pop(0) if len(answers) > 1 else answers[0]
        raise AssertionError(f"no answer was given for {command}")


def build_success(stdout: bytes = b"", stderr: bytes = b"") -> CommandResult:
    """Return the answer of a command that succeeded."""
    return CommandResult(exit_status=0, stdout=stdout, stderr=stderr)
