"""Reads h2load's log of requests, and its stdout.

A line of the log is "start in microseconds since the epoch, TAB, status, TAB, microseconds"; the
status is -1 for a failed stream. Its report is text on stdout, which is copied into {out}:
{"stdout": text, "logged": {"answered": n, "failed": n}}.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import TrialFailed
from ..files import write_json
from ..paths import build_stdout_path
from .request_counter import RequestCounter

#: The maximum of stored stdout: its beginning and its end.
STDOUT_CHARS = 32_000


def read(
    _folder: Path, out: Path, rows: Path, warmup_s: float, good_statuses: Collection[int] = (200,)
) -> dict[str, Any]:
    """Read the log; TrialFailed if it is missing, or a line is invalid."""
    if not rows.exists():
        raise TrialFailed("output_lost", "h2load left no log of its requests; is the disk full?")
    stdout = build_stdout_path(out).read_text("utf-8", "replace")
    counter, failed = RequestCounter(warmup_s), 0
    with open(rows, encoding="ascii", errors="replace") as lines:
        # The log is ordered by the ends of the requests.
        first_us = min((start_us for start_us, _, _ in _iterate_requests(lines)), default=0)
        lines.seek(0)
        for start_us, status, us in _iterate_requests(lines):
            start_s = (start_us - first_us) / 1e6
            if status < 0:
                failed += 1
            else:
                counter.add(start_s, start_s + us / 1e6, us, status in good_statuses, status)
    reduced = counter.rows_json()
    write_json(
        out,
        {"stdout": shorten(stdout), "logged": {"answered": reduced["all"]["n"], "failed": failed}},
    )
    return reduced


def _iterate_requests(lines: Iterable[str]) -> Iterator[tuple[int, int, int]]:
    """Start, status and latency of each line; TrialFailed for an incomplete one."""
    for number, line in enumerate(lines, 1):
        try:
            start_us, status, us = line.split("\t")
            if not line.endswith("\n"):
                raise ValueError("no end of the line")
            yield int(start_us), int(status), int(us)
        except ValueError as error:
            raise TrialFailed(
                "output_lost",
                f"line {number} of h2load's log is incomplete: {line[:80]!r}; is the disk full?",
            ) from error


def shorten(text: str) -> str:
    if len(text) <= STDOUT_CHARS:
        return text
    return text[: STDOUT_CHARS // 2] + "\n…\n" + text[-STDOUT_CHARS // 2 :]
