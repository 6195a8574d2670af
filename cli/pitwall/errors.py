"""What ends a command. Exit statuses: 0 pass, 1 what the build may not contain, 2 no answer.

NoAnswerError
└── RefusedError        the server said no, and why
"""

from __future__ import annotations

from typing import Optional

PASS, FOUND, NO_ANSWER, INTERRUPTED = 0, 1, 2, 130


class NoAnswerError(Exception):
    """Nothing can be said of the commits; the message says why, and what to do."""


class RefusedError(NoAnswerError):
    def __init__(self, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.status = status
