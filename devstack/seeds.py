"""Reproduce the five public reports in miniature on this machine through the REST API.

The stack runs already, and its settings are in the environment. Each report gets one run of its
suite, and a page in Markdown. Exit status 0 means that each run has finished. The page gives the
reason for each row without a value.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devstack.demo_client import Client
from devstack.demo_progress import follow
from devstack.errors import DevstackError
from devstack.places import CHECKOUT
from devstack.suite_repository import build_suite_repository

#: The number of each report, and the suite that reproduces it.
SUITES = {
    "000": "restful-compression",
    "001": "api-vs-grpc",
    "002": "http-clients",
    "003": "protocols",
    "004": "server-overhead",
}
#: Each poll takes machine time from the measurement.
POLL_S = 5.0


class SeedsError(DevstackError):
    """A report could not be reproduced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """How much of a report has a value here: `missing` are the other systems with their reasons."""

    seed: str
    suite: str
    cases: int
    with_numbers: int
    systems: int
    working: int
    missing: dict[str, str]


def main() -> int:
    options = _parse_options()
    try:
        results = [
            _reproduce(options, seed)
            for seed, suite in SUITES.items()
            if not options.only or seed in options.only or suite in options.only
        ]
    except DevstackError as error:
        print(f"\nIt failed: {error}", flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    print(_format_summary(results), flush=True)
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devstack.seeds", description=__doc__)
    parser.add_argument("folder", type=Path, help="the instance's folder")
    parser.add_argument(
        "--full", action="store_true", help="loads as long as in the reports; takes hours"
    )
    parser.add_argument("--only", nargs="+", default=[], help="numbers of reports, or suites")
    parser.add_argument("--cases", help="an expression: only these; default: the suite's own")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "docs" / "reproducing")
    return parser.parse_args()


def _reproduce(options: argparse.Namespace, seed: str) -> Reproduction:
    suite = SUITES[seed]
    repository = options.folder / "suites" / suite
    sha = build_suite_repository(suite, repository)
    size = [] if options.full else ["--miniature"]
    added = _run_manage("add_suite", suite, "--repository", str(repository), *size)
    if options.cases is not None:
        added["cases"] = options.cases
    client = Client(os.environ["PITWALL_BASE_URL"], added["token"])
    _cancel_leftovers(client)
    run = _measure(client, added, sha)
    summary = _run_manage(
        *("write_reproduction", run["id"], "--reports", *added["reports"]),
        *("--full", f'make seeds ARGS="--full --only {suite}"'),
        *(*size, "--out", str(options.out / f"{seed}.md")),
    )
    return Reproduction(seed=seed, suite=suite, **summary)


def _cancel_leftovers(client: Client) -> None:
    """Cancel runs that an interrupted command left behind."""
    for state in ("queued", "running"):
        for run in client.get("/api/v1/runs", state=state)["runs"]:
            client.post(f"/api/v1/runs/{run['id']}/cancel", {})


def _measure(client: Client, added: dict[str, Any], sha: str) -> dict[str, Any]:
    wanted = {
        "benchmark": added["benchmark"],
        "baseline": sha,
        "contenders": [],
        "cases": added["cases"],
        "hosts": [added["host"]],
    }
    run = client.get(f"/api/v1/runs/{client.post('/api/v1/runs', wanted)['id']}")
    print(f"\n  {added['benchmark']}: {run['trials_total']} trials. {run['web_url']}", flush=True)
    run = follow(client, run, poll_s=POLL_S)
    if run["state"] != "finished":
        print(f"  the run is {run['state']}: {run['message']}", flush=True)
    return dict(run)


def _run_manage(*argv: str) -> dict[str, Any]:
    """Return the output of a management command."""
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), *argv, "--quiet"],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SeedsError(f"manage.py {argv[0]} failed.\n{done.stderr.strip()}")
    output: dict[str, Any] = json.loads(done.stdout)
    return output


def _format_summary(results: list[Reproduction]) -> str:
    lines = [""]
    for one in results:
        lines.append(
            f"  {one.seed} {one.suite}: {one.working} of {one.systems} systems work, "
            f"{one.with_numbers} of {one.cases} cases have numbers"
        )
        lines += [f"      {name}: {why}" for name, why in one.missing.items()]
    working, systems = sum(one.working for one in results), sum(one.systems for one in results)
    return "\n".join([*lines, "", f"  {working} of {systems} systems work here."])


if __name__ == "__main__":
    sys.exit(main())
