"""`pitwall wait`: wait until a run has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Optional

from .bar import Progress
from .client import Client
from .errors import NoDataError, RunEndError, RunFailedError, TimedOutError
from .failures import NO_DATA_STATE, load_failed_cases, render_failed_cases
from .units import format_duration

#: Seconds that the server may wait before it responds; a progress bar polls more often.
LONG_POLL_S, LIVE_POLL_S = 30, 2
#: Pause between two polls if the server does not wait because too many clients do.
PAUSE_S = 2.0


def wait_for_end(
    client: Client,
    run_id: str,
    progress: Progress,
    *,
    timeout_s: Optional[float] = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Any:
    """Return the run after its end, with its `failed_cases`, which are shown as well.

    Raise RunFailedError if it failed or was cancelled, NoDataError if it has no usable data,
    TimedOutError if it took too long.
    """
    poll_s = LIVE_POLL_S if progress.live else LONG_POLL_S
    until = None if timeout_s is None else clock() + timeout_s
    run = client.get(f"runs/{run_id}")
    while True:
        progress.show(count_finished(run), run["trials_total"], describe_progress(run))
        if run["ended_at"] is not None:
            break
        if until is not None and clock() >= until:
            progress.end()
            raise TimedOutError(
                f"the run is {run['state']} after {format_duration(timeout_s or 0)} and continues: "
                f"{run['web_url']}",
                run,
            )
        left = poll_s if until is None else max(0.0, min(poll_s, until - clock()))
        before, asked_at = run["state"], clock()
        run = client.get(f"runs/{run_id}", {"wait": round(left, 1)}, wait_s=left)
        pause = min(left, PAUSE_S) - (clock() - asked_at)
        if run["state"] == before and pause > 0:
            sleep(pause)
    progress.end()
    failed = load_failed_cases(client, run)
    for line in render_failed_cases(failed):
        progress.print_result(line)
    if run["state"] != "finished":
        raise _build_end_error(run, failed)
    return {**run, "failed_cases": failed}


def _build_end_error(run: Any, failed_cases: list[dict[str, Any]]) -> RunEndError:
    why = f": {run['message']}" if run["message"] else ""
    ends = {"failed": "failed", "cancelled": "was cancelled", NO_DATA_STATE: "has no usable data"}
    message = f"the run {ends[run['state']]}{why}; see {run['web_url']}"
    kind = NoDataError if run["state"] == NO_DATA_STATE else RunFailedError
    return kind(message, run, failed_cases)


def count_finished(run: Any) -> int:
    """Return the number of finished trials, without those that a failed job skipped."""
    return int(run["trials_done"]) - int(run["trials_skipped"])


def describe_progress(run: Any) -> str:
    """Return one line: the state, the progress, and the remaining time."""
    state = run["state"].replace("_", " ")
    parts = [f"{state}: {count_finished(run)} of {run['trials_total']} trials"]
    if run["ended_at"] is None:
        parts += _describe_left(run)
        parts += _describe_current_work(run)
    return ", ".join(parts)


def _describe_left(run: Any) -> list[str]:
    """Return the time until the end of the run, with the time in the queue."""
    if not run["seconds_left"]:
        return []
    queue_s = run["seconds_until_start"] or 0.0
    text = f"about {format_duration(queue_s + run['seconds_left'])} left"
    return [f"{text} ({format_duration(queue_s)} of it in the queue)" if queue_s else text]


def _describe_current_work(run: Any) -> list[str]:
    """Return the running work, or why nothing runs."""
    waiting = [job["waiting"] for job in run["jobs"] if job["state"] == "queued" and job["waiting"]]
    active = [job["phase"] for job in run["jobs"] if job["phase"] and job["state"] != "queued"]
    return (active or waiting or [run["phase"]] if run["phase"] else active or waiting)[:1]
