"""Follow a run of the demo or of the seeds until it ends."""

from __future__ import annotations

import sys
import time
from typing import Any

from cli.pitwall.bar import Progress
from cli.pitwall.following import count_finished, describe_progress
from devstack.demo_client import Client

#: Without a terminal each poll prints a line.
PLAIN_POLL_S = 5.0
ENDED = ("finished", "no_data", "failed", "cancelled")


def follow(
    client: Client, run: dict[str, Any], *, poll_s: float, until_paused: bool = False
) -> dict[str, Any]:
    """Poll a run every `poll_s` seconds and show its progress; return the ended run.

    `until_paused`: also return a run with a job that pauses, because its host is busy.
    """
    progress = Progress(sys.stdout)
    reported: set[str] = set()
    if not progress.live:
        poll_s = max(poll_s, PLAIN_POLL_S)
    try:
        while run["state"] not in ENDED:
            report_waits(progress, run, reported)
            show(progress, run)
            if until_paused and find_pause(run):
                break
            time.sleep(poll_s)
            run = client.get(f"/api/v1/runs/{run['id']}")
        show(progress, run)
    finally:
        progress.end()
    return run


def find_pause(run: dict[str, Any]) -> str:
    """Return why a job pauses; empty if none does."""
    return next((job["message"] for job in run["jobs"] if job["phase"] == "paused"), "")


def report_waits(progress: Progress, run: dict[str, Any], reported: set[str]) -> None:
    """Print once for each host why its trials wait."""
    for job in run["jobs"]:
        if job["phase"].startswith("waiting") and job["message"] and job["host"] not in reported:
            reported.add(job["host"])
            progress.end()
            print(f"  {job['message']}", flush=True)


def show(progress: Progress, run: dict[str, Any]) -> None:
    progress.show(count_finished(run), run["trials_total"], describe_progress(run))
