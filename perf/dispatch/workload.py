"""The two kinds of work that every candidate is given, and the two ways to give it."""

from __future__ import annotations

from enum import StrEnum

FILE_BYTES = 1_000_000


class Work(StrEnum):
    """EMPTY: run a command that does nothing. COPY: bring a new 1 MB file there first."""

    EMPTY = "empty"
    COPY = "copy"


class Form(StrEnum):
    """EACH: jobs come one by one, an invocation serves one of them. BATCH: one serves all hosts."""

    EACH = "an invocation a job"
    BATCH = "one invocation for all hosts"
