"""Errors of archives in addition to those of core/errors.py."""

from typing import IO

from orchestrator.core.errors import PitwallError

_WORDS = 2000


class ProgramFailedError(PitwallError):
    """A program of PostgreSQL failed; the message ends with the end of its output."""

    def __init__(self, program: str, status: int, stderr: IO[bytes]) -> None:
        stderr.seek(0)
        words = stderr.read().decode(errors="replace").strip()[-_WORDS:]
        super().__init__(f"{program} failed with status {status}: {words or 'no message'}")
