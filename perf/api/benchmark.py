"""The benchmark itself; `python -m perf.api` has started PostgreSQL and Redis before."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import perf.harness.django_setup  # noqa: F401

# isort: split
from django.db import connections

from perf.api import requests
from perf.api.dataset import Dataset, make
from perf.api.long_polls import LIMITS, page_seconds, waiting
from perf.api.requests import TimedRequests, measure_counting_s
from perf.harness.machine import describe_machine
from perf.harness.report import Requirement, judge_requirements, keep, render_table
from perf.harness.web_servers import collect_static, serve_bare, serve_web

NAME = "api"
SITE = "orchestrator.config.wsgi"
WANTED = {
    "read_run_ms": Requirement(relation="<", limit=5),
    "read_queued_run_ms": Requirement(relation="<", limit=5),
    "start_200_cases_ms": Requirement(relation="<", limit=100),
    "count_request_ms": Requirement(relation="<", limit=0.3),
    "page_p95_waiting_to_alone": Requirement(relation="<", limit=2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    rounds: int
    requests: int
    waiting: int


FULL = Extent(rounds=10, requests=50, waiting=500)
SHORT = Extent(rounds=1, requests=4, waiting=20)
ALONE, WAITING = "page, alone", "page, others wait"


def main() -> None:
    options = parse()
    came_from, began = describe_machine(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pwb-") as name:
        timings, counted = measure(SHORT if options.short else FULL, Path(name))
    figures = build_report_data(timings, counted)
    answer = judge_requirements(NAME, figures, {key: WANTED.get(key) for key in figures})
    print(f"\n{format_text(timings)}\n\n{time.monotonic() - began:.0f} s in all\n")
    if options.keep:
        details = {name: _spread(each) for name, each in timings.items()}
        print(f"kept in {keep(NAME, {**answer, 'machine': came_from, 'details': details})}")
    print(json.dumps(answer))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.api")
    parser.add_argument("--short", action="store_true", help="only check that it works")
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    return parser.parse_args()


def measure(extent: Extent, folder: Path) -> tuple[dict[str, list[float]], float]:
    collect_static()
    dataset = make(folder)
    connections.close_all()
    local = {"PITWALL_ALLOW_LOCAL_REPOSITORIES": "1", **LIMITS}
    with (
        serve_web(SITE, folder, local) as site,
        serve_bare(folder) as bare,
    ):
        timed = TimedRequests(site, bare, dataset)
        timed.warm_up()
        for number in range(extent.rounds):
            print(f"  round {number + 1} of {extent.rounds}", flush=True)
            timed.round(extent.requests)
        pages = time_pages(site.port, dataset, extent)
    return {**timed.timings_ms, **pages}, measure_counting_s(20 * extent.requests)


def time_pages(port: int, dataset: Dataset, extent: Extent) -> dict[str, list[float]]:
    """Measure both in turns, so that other load of the machine affects both."""
    timings: dict[str, list[float]] = {ALONE: [], WAITING: []}
    page_seconds(port, dataset, 8)
    for _ in range(extent.rounds):
        timings[ALONE] += page_seconds(port, dataset, extent.requests)
        with waiting(port, dataset, extent.waiting):
            timings[WAITING] += page_seconds(port, dataset, extent.requests)
    return timings


def build_report_data(timings: dict[str, list[float]], counted: float) -> dict[str, float]:
    typical = {name: median(each) for name, each in timings.items()}
    bare = typical[requests.BARE]
    return {
        "bare_view_ms": 1000 * bare,
        "read_run_ms": 1000 * typical[requests.SHOW],
        "read_run_to_bare": typical[requests.SHOW] / bare,
        "read_queued_run_ms": 1000 * typical[requests.SHOW_QUEUED],
        "read_again_ms": 1000 * typical[requests.AGAIN],
        "list_runs_ms": 1000 * typical[requests.LIST],
        "start_200_cases_ms": 1000 * typical[requests.START],
        "start_200_cases_to_bare": typical[requests.START] / bare,
        "start_same_key_ms": 1000 * typical[requests.REPEAT],
        "count_request_ms": 1000 * counted,
        "page_p95_alone_ms": _spread(timings[ALONE])["p95_ms"],
        "page_p95_waiting_ms": _spread(timings[WAITING])["p95_ms"],
        "page_p95_waiting_to_alone": (
            _spread(timings[WAITING])["p95_ms"] / _spread(timings[ALONE])["p95_ms"]
        ),
    }


def format_text(timings: dict[str, list[float]]) -> str:
    bare = median(timings[requests.BARE])
    rows = []
    for name, each in timings.items():
        spread = _spread(each)
        times = [f"{spread[key]:.2f}" for key in ("median_ms", "p95_ms")]
        rows.append([name, str(len(each)), *times, f"{median(each) / bare:.1f}"])
    return render_table(["in the server", "requests", "median, ms", "95 %, ms", "to bare"], rows)


def _spread(seconds: list[float]) -> dict[str, float]:
    high = quantiles(seconds, n=20)[-1] if len(seconds) > 1 else seconds[0]
    return {
        "median_ms": round(1000 * median(seconds), 3),
        "p95_ms": round(1000 * high, 3),
        "requests": len(seconds),
    }


if __name__ == "__main__":
    main()
