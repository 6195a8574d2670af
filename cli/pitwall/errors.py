"""Errors that end a command, and the exit statuses.

NoAnswerError           2
├── UsageError          2: an option is wrong
├── RefusedError        2: the server rejected the request
└── RunEndError         a run that was waited for has no result
    ├── RunFailedError  3: it failed or was cancelled
    ├── NoDataError     4: none of its trials is usable
    └── TimedOutError   5: `--timeout` was reached
"""

from __future__ import annotations

from typing import Any, Optional

#: 1: a verdict that fails the build. 4: a case, or the whole run, has no usable result.
PASS, FOUND, NO_ANSWER, RUN_FAILED, NO_DATA, TIMED_OUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


class NoAnswerError(Exception):
    """There is no result about the commits; the message states the reason and the fix."""

    exit_status = NO_ANSWER

    @property
    def details(self) -> dict[str, Any]:
        """Return further fields of the error for `--json`."""
        return {}


class UsageError(NoAnswerError):
    """`usage` is the synopsis of the command."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class RefusedError(NoAnswerError):
    def __init__(self, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def details(self) -> dict[str, Any]:
        return {"http_status": self.status}


class RunEndError(NoAnswerError):
    """`failed_cases` are those of `failures.load_failed_cases`."""

    def __init__(
        self, message: str, run: Any, failed_cases: Optional[list[dict[str, Any]]] = None
    ) -> None:
        super().__init__(message)
        self.run = run
        self.failed_cases = failed_cases or []

    @property
    def details(self) -> dict[str, Any]:
        return {"run": self.run, "failed_cases": self.failed_cases}


class RunFailedError(RunEndError):
    exit_status = RUN_FAILED


class NoDataError(RunEndError):
    exit_status = NO_DATA


class TimedOutError(RunEndError):
    exit_status = TIMED_OUT
