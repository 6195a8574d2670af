"""Errors that end a command. Exit statuses: 0 pass, 1 a verdict that fails the build, 2 no result.

NoAnswerError
└── RefusedError        the server rejected the request
"""

from __future__ import annotations

from typing import Optional

PASS, FOUND, NO_ANSWER, INTERRUPTED = 0, 1, 2, 130


class NoAnswerError(Exception):
    """There is no result about the commits; the message states the reason and the fix."""


class RefusedError(NoAnswerError):
    def __init__(self, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.status = status
