"""Latency from `POST /api/v1/runs` to the first process on the host."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devstack.demo_client import Client
from perf.dispatch.run_client import ask, wait_for_end
from perf.harness.ssh_hosts import SshHost

LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds from the request to the agent's supervisor, and to the first trial's start."""

    to_supervisor_s: float
    to_trial_s: float


def measure_latency(client: Client, benchmark: str, shas: Sequence[str], host: SshHost) -> Latency:
    """Measure one run on a host that was used before, while Pitwall is otherwise idle."""
    # Pitwall checks its queue at fixed times: start at a random time between two of them.
    time.sleep(random.uniform(0, 1))
    posted_run = ask(client, benchmark, shas, host.name, rounds=1)
    run = wait_for_end(client, posted_run, limit_s=LIMIT_S)
    started = read_first_events(host.work_dir / "jobs" / run["jobs"][0]["id"])
    return Latency(
        to_supervisor_s=started["supervisor_started"] - posted_run.posted_at,
        to_trial_s=started["trial_started"] - posted_run.posted_at,
    )


def read_first_events(folder: Path) -> dict[str, float]:
    """Return the first time of each kind of event, from the host's journals of a job."""
    first: dict[str, float] = {}
    for journal in folder.glob("*/journal.jsonl"):
        for line in journal.read_text().splitlines():
            event = json.loads(line)
            first[event["event"]] = min(event["t"], first.get(event["event"], event["t"]))
    return first
