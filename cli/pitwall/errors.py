"""Errors that end a command, and the exit statuses.

NoAnswerError           2
├── RefusedError        2: the server rejected the request
├── RunFailedError      3: the run failed or was cancelled
└── TimedOutError       5: `--timeout` was reached
"""

from __future__ import annotations

from typing import Optional

#: 1: a verdict that fails the build. 4: a case has no usable result.
PASS, FOUND, NO_ANSWER, RUN_FAILED, NO_DATA, TIMED_OUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


class NoAnswerError(Exception):
    """There is no result about the commits; the message states the reason and the fix."""

    exit_status = NO_ANSWER


class RunFailedError(NoAnswerError):
    exit_status = RUN_FAILED


class TimedOutError(NoAnswerError):
    exit_status = TIMED_OUT


class RefusedError(NoAnswerError):
    def __init__(self, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.status = status
