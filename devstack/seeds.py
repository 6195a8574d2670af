"""Reproduce the five public reports on this machine through the REST API.

The stack runs already, and its settings are in the environment. Each report gets runs of its suite,
and a page in Markdown: one run in miniature, or with --report several that give intervals. Exit
status 0 means that each run has ended. The page gives the reason for each row without a value.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.pitwall.units import format_duration, format_items
from devstack.demo_client import Client
from devstack.errors import DevstackError
from devstack.extra_runs import measure_again
from devstack.places import CHECKOUT
from devstack.report_runs import (
    RunRecord,
    WantedRun,
    cancel_others,
    list_wanted_runs,
    measure,
    plan_seconds,
)
from devstack.suite_repository import build_suite_repository

#: The number of each report, and the suite that reproduces it.
SUITES = {
    "000": "restful-compression",
    "001": "api-vs-grpc",
    "002": "http-clients",
    "003": "protocols",
    "004": "server-overhead",
}
#: The most expected seconds of all reports in their size, without builds.
MOST_REPORT_S = 3 * 3600.0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSuite:
    """The runs of one suite; `added` is the output of `add_suite`."""

    seed: str
    suite: str
    added: dict[str, Any]
    client: Client
    record: RunRecord
    runs: list[WantedRun]


def main() -> int:
    options = _parse_options()
    try:
        suites = [
            _prepare(options, seed)
            for seed, suite in SUITES.items()
            if not options.only or seed in options.only or suite in options.only
        ]
        planned_s = _print_plan(options, suites)
        if options.plan or not suites:
            return 0
        cancel_others(suites[0].client, [each.record for each in suites])
        ends_at = time.monotonic() + MOST_REPORT_S
        results = [
            _reproduce(options, each, ends_at - sum(planned_s[number:]))
            for number, each in enumerate(suites, start=1)
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
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--report",
        dest="size",
        action="store_const",
        const="report",
        help="several runs with intervals, at most three hours; continues after an interruption",
    )
    sizes.add_argument(
        "--full",
        dest="size",
        action="store_const",
        const="full",
        help="loads as long as in the reports; takes days",
    )
    parser.add_argument("--plan", action="store_true", help="only print the planned time")
    parser.add_argument("--only", nargs="+", default=[], help="numbers of reports, or suites")
    parser.add_argument("--cases", help="an expression: only these; default: the suite's own")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "docs" / "reproducing")
    parser.set_defaults(size="miniature")
    return parser.parse_args()


def _prepare(options: argparse.Namespace, seed: str) -> PlannedSuite:
    """Add the suite, and list its runs; nothing is measured yet."""
    suite = SUITES[seed]
    repository = options.folder / "suites" / suite
    shas = build_suite_repository(suite, repository)
    added = _run_manage("add_suite", suite, "--repository", str(repository), "--size", options.size)
    if options.cases is not None:
        added["parts"] = [{"cases": options.cases, "commits": 1}]
    kept = options.folder / "reports" / f"{suite}.json" if options.size == "report" else None
    return PlannedSuite(
        seed=seed,
        suite=suite,
        added=added,
        client=Client(os.environ["PITWALL_BASE_URL"], added["token"]),
        record=RunRecord(kept),
        runs=list_wanted_runs(added, shas),
    )


def _print_plan(options: argparse.Namespace, suites: list[PlannedSuite]) -> list[float]:
    """Print and return the expected seconds of each suite; SeedsError if reports take too long."""
    planned_s = []
    print("\n  Planned, without builds:", flush=True)
    for each in suites:
        seconds, finished = plan_seconds(each.client, each.record, each.runs)
        runs = format_items(len(each.runs), "run")
        if finished:
            runs += f", {finished} of them measured earlier"
        print(f"  {each.seed} {each.suite}: {runs}, {format_duration(seconds)}", flush=True)
        planned_s.append(seconds)
    total = sum(planned_s)
    print(f"  Together: {format_duration(total)}", flush=True)
    if options.size == "report" and total > MOST_REPORT_S:
        raise SeedsError(
            f"reports may take {format_duration(MOST_REPORT_S)}: select some with --only, or "
            "shorten their report-size.yaml"
        )
    return planned_s


def _reproduce(options: argparse.Namespace, planned: PlannedSuite, until: float) -> Reproduction:
    """Measure a suite and write its page. No extra run starts that would end after `until`."""
    client, record = planned.client, planned.record
    runs = list(measure(client, record, planned.runs))
    if options.size == "report":
        enough = planned.added["enough_trials"]
        extra = measure_again(client, record, planned.runs, runs, enough=enough, until=until)
        runs = [*runs, *extra]
    commands = {"miniature": "--report", "report": "--report", "full": "--full"}
    argument = f"{commands[options.size]} --only {planned.suite}"
    summary = _run_manage(
        *("write_reproduction", *(run["id"] for run in runs)),
        *("--reports", *planned.added["reports"]),
        *("--command", f'make seeds ARGS="{argument}"', "--size", options.size),
        *("--out", str(options.out / f"{planned.suite}.md")),
    )
    return Reproduction(seed=planned.seed, suite=planned.suite, **summary)


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
