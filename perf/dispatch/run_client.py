"""Request runs through the REST API, as a CI does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devstack.demo_client import Client

#: Only the way to the result is measured here, so disturbed trials count as well.
COMPLETED = ("finished", "no_data")
ENDED = (*COMPLETED, "failed", "cancelled")


class RunFailedError(Exception):
    """A run did not finish; the text is its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedRun:
    """A run, and the time (Unix seconds) just before its request."""

    id: str
    posted_at: float


def ask(client: Client, benchmark: str, shas: Sequence[str], host: str, rounds: int) -> PostedRun:
    """POST /api/v1/runs of the first commit against the others."""
    wanted = {
        "benchmark": benchmark,
        "baseline": shas[0],
        "contenders": list(shas[1:]),
        "hosts": [host],
        "rounds": rounds,
        "wait_for_quiet": False,
    }
    posted_at = time.time()
    return PostedRun(id=client.post("/api/v1/runs", wanted)["id"], posted_at=posted_at)


def wait_for_end(client: Client, posted_run: PostedRun, *, limit_s: float) -> dict[str, Any]:
    """Return the run once it has finished. Raise RunFailedError if it fails or takes too long."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        run: dict[str, Any] = client.get(f"/api/v1/runs/{posted_run.id}", wait="5")
        if run["state"] in COMPLETED:
            return run
        if run["state"] in ENDED:
            break
    raise RunFailedError(f"the run is {run['state']}: {run['message']}")


def read_end_time(run: dict[str, Any]) -> float:
    """Return when it ended, in Unix seconds."""
    return datetime.fromisoformat(run["ended_at"]).timestamp()
