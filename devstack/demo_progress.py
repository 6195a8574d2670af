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
ENDED = ("finished", "failed", "cancelled")


def follow(client: Client, run: dict[str, Any], *, poll_s: float) -> dict[str, Any]:
    """Poll a run every `poll_s` seconds and show its progress; return the ended run."""
    progress = Progress(sys.stdout)
    reported: set[str] = set()
    if not progress.live:
        poll_s = max(poll_s, PLAIN_POLL_S)
    try:
        while run["state"] not in ENDED:
            report_waits(progress, run, reported)
            show(progress, run)
            time.sleep(poll_s)
            run = client.get(f"/api/v1/runs/{run['id']}")
        show(progress, run)
    finally:
        progress.end()
    return run


def report_waits(progress: Progress, run: dict[str, Any], reported: set[str]) -> None:
    """Print once for each host why its trials wait."""
    for job in run["jobs"]:
        if job["phase"].startswith("waiting") and job["message"] and job["host"] not in reported:
            reported.add(job["host"])
            progress.end()
            print(f"  {job['message']}", flush=True)


def show(progress: Progress, run: dict[str, Any]) -> None:
    progress.show(count_finished(run), run["trials_total"], describe_progress(run))
