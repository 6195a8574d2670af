"""The two kinds of work for every candidate, and the two ways to submit it."""

from __future__ import annotations

from enum import StrEnum

FILE_BYTES = 1_000_000


class Work(StrEnum):
    """EMPTY: run a command that does nothing. COPY: transfer a new 1 MB file first."""

    EMPTY = "empty"
    COPY = "copy"


class Form(StrEnum):
    """EACH: one invocation per job. BATCH: one invocation for all hosts."""

    EACH = "an invocation a job"
    BATCH = "one invocation for all hosts"
