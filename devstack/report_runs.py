"""The runs that a report needs: several repetitions of each part of a suite, kept by their ids.

A command that was interrupted continues: a run that finished is not measured again, and one that
was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.pitwall.units import format_items
from devstack.demo_client import ApiError, Client
from devstack.demo_progress import ENDED, follow

#: Each poll takes machine time from the measurement: 0.05 s of CPU time.
POLL_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRun:
    """`body` requests the run; `key` is different for another definition, commit or repetition."""

    key: str
    body: Mapping[str, Any]


class RunRecord:
    """The ids of the runs of a suite by their keys, in a file; without a path only in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        known = json.loads(path.read_text()) if path is not None and path.exists() else {}
        self.ids: dict[str, str] = dict(known)

    def add(self, key: str, run_id: str) -> None:
        self.ids[key] = run_id
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.ids, indent=1))
            # A kill leaves the old file or the new one.
            os.replace(new, self.path)


def list_wanted_runs(added: Mapping[str, Any], shas: Sequence[str]) -> list[WantedRun]:
    """Return the runs of a suite in their order: all parts, then all parts again.

    `added` is the output of `add_suite`; `shas` are the commits of its repository, newest last.
    """
    return [
        _build_wanted_run(added, part, shas, repeat)
        for repeat in range(added["repeats"])
        for part in added["parts"]
    ]


def _build_wanted_run(
    added: Mapping[str, Any], part: Mapping[str, Any], shas: Sequence[str], repeat: int
) -> WantedRun:
    baseline, *contenders = shas[-part["commits"] :]
    body = {
        "benchmark": added["benchmark"],
        "baseline": baseline,
        "contenders": contenders,
        "cases": part["cases"],
        "hosts": [added["host"]],
    }
    key = json.dumps([added["version"], repeat, body], sort_keys=True)
    return WantedRun(key=key, body=body)


def find_kept_run(client: Client, record: RunRecord, wanted: WantedRun) -> dict[str, Any] | None:
    """Return the run that was started earlier, unless it ended without results or is gone."""
    run_id = record.ids.get(wanted.key)
    if run_id is None:
        return None
    try:
        run = dict(client.get(f"/api/v1/runs/{run_id}"))
    except ApiError:
        return None
    return run if run["state"] == "finished" or run["state"] not in ENDED else None


def plan_seconds(client: Client, record: RunRecord, runs: Sequence[WantedRun]) -> tuple[float, int]:
    """Return the expected seconds of all runs that are not finished, and the number of the others.

    Builds are not included. Runs of the same request are planned once.
    """
    known: dict[str, float] = {}
    seconds, finished = 0.0, 0
    for wanted in runs:
        kept = find_kept_run(client, record, wanted)
        if kept is not None and kept["state"] in ENDED:
            finished += 1
            continue
        request = json.dumps(wanted.body)
        if request not in known:
            known[request] = client.post("/api/v1/runs/plan", dict(wanted.body))["seconds"]
        seconds += known[request]
    return seconds, finished


def measure(
    client: Client, record: RunRecord, runs: Sequence[WantedRun]
) -> Iterator[dict[str, Any]]:
    """Start or continue each run, and yield it when it has ended."""
    for number, wanted in enumerate(runs, start=1):
        head = f"{wanted.body['benchmark']}, run {number} of {len(runs)}"
        yield measure_run(client, record, wanted, head)


def measure_run(client: Client, record: RunRecord, wanted: WantedRun, head: str) -> dict[str, Any]:
    """Start or continue a run, and return it when it has ended. `head` begins what is printed."""
    run = find_kept_run(client, record, wanted)
    if run is None:
        run_id = client.post("/api/v1/runs", dict(wanted.body))["id"]
        record.add(wanted.key, run_id)
        run = client.get(f"/api/v1/runs/{run_id}")
    if run["state"] in ENDED:
        print(f"\n  {head}: measured earlier. {run['web_url']}", flush=True)
    else:
        trials = format_items(run["trials_total"], "trial")
        print(f"\n  {head}: {trials}. {run['web_url']}", flush=True)
        run = follow(client, run, poll_s=POLL_S)
    if run["state"] != "finished":
        print(f"  the run is {run['state']}: {run['message']}", flush=True)
    return dict(run)


def cancel_others(client: Client, records: Sequence[RunRecord]) -> None:
    """Cancel runs that an interrupted command left behind, except those of the records."""
    kept = {run_id for record in records for run_id in record.ids.values()}
    for state in ("queued", "running"):
        for run in client.get("/api/v1/runs", state=state)["runs"]:
            if run["id"] not in kept:
                client.post(f"/api/v1/runs/{run['id']}/cancel", {})
