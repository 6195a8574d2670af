"""The benchmark itself; `python -m perf.pages` has started PostgreSQL and Redis before."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Set this before Django reads its settings: the generated project is a folder of this machine.
os.environ["PITWALL_ALLOW_LOCAL_REPOSITORIES"] = "1"
import perf.harness.django_setup  # noqa: F401

# isort: split
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from perf.harness.machine import describe_machine
from perf.harness.report import judge_requirements, keep
from perf.harness.web_servers import collect_static, serve_web
from perf.pages import live_run, summary
from perf.pages.lighthouse import Lighthouse, MissingError, find_programs, install
from tests.browser.screens import list_screens
from tests.support.demo_team import DemoTeam, make_demo_team

NAME = "pages"
LIVE = "live"
OTHERS = "others"
SITE = "orchestrator.config.wsgi"
FORMS = ("mobile", "desktop")
ROUNDS = 3
MAIN = (
    "overview", "runs", "run-new", "run", "run-running", "trial", "compare", "history", "alerts",
    "alert", "report", "report-new", "hosts", "host", "benchmarks", "benchmark", "schedules",
    "settings",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The screens, devices and repetitions.

    `others`: measure the remaining screens, too. Each is audited once, and as often as a main
    screen if that audit misses a target.
    """

    names: tuple[str, ...]
    others: bool
    forms: tuple[str, ...]
    rounds: int
    live: bool
    short: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    audits: list[dict[str, Any]]
    waits: dict[str, list[float]]


def main() -> int:
    options = parse()
    came_from, began = describe_machine(), time.monotonic()
    try:
        measurements = measure_pages(build_plan(options))
    except MissingError as error:
        print(error, file=sys.stderr)
        return 1
    medians = summary.compute_medians(measurements.audits)
    audit_values, wait_values = (
        summary.get_measured(medians),
        live_run.get_measured(measurements.waits),
    )
    wanted = summary.build_requirements(audit_values) | {
        key: live_run.find_requirement(key) for key in wait_values
    }
    answer = judge_requirements(NAME, audit_values | wait_values, wanted)
    tables = [summary.format_text(medians)] if measurements.audits else []
    tables += [live_run.format_text(measurements.waits)] if measurements.waits else []
    print("", *tables, f"{time.monotonic() - began:.0f} s in all\n", sep="\n\n")
    if options.keep:
        more = {"machine": came_from, "details": summary.list_details(measurements.audits)}
        print(f"kept in {keep(NAME, {**answer, **more})}")
    print(json.dumps(answer))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.pages")
    parser.add_argument("--short", action="store_true", help="only check that it works")
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="audits per screen")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="only this screen (tests/browser/screens.py), `others`, or `live`; may be repeated",
    )
    return parser.parse_args()


def build_plan(options: argparse.Namespace) -> Plan:
    names = options.only or [*(MAIN[:1] if options.short else (*MAIN, OTHERS)), LIVE]
    return Plan(
        names=tuple(each for each in names if each not in (OTHERS, LIVE)),
        others=OTHERS in names,
        forms=FORMS[:1] if options.short else FORMS,
        rounds=1 if options.short else options.rounds,
        live=LIVE in names,
        short=options.short,
    )


def measure_pages(plan: Plan) -> Measurements:
    paths = find_programs()
    npm = paths.pop("npm")
    if plan.names or plan.others:
        install(npm)
    collect_static()
    call_command("migrate", verbosity=0)
    with tempfile.TemporaryDirectory(prefix="pwb-") as folder:
        demo_team = make_demo_team(Path(folder))
        lighthouse = Lighthouse(cookie=build_cookie(demo_team), **paths)
        with serve_web(SITE, Path(folder), {}) as server:
            base = f"http://127.0.0.1:{server.port}"
            visit = live_run.LoggedIn(
                chromium=lighthouse.chromium, base=base, cookie=lighthouse.cookie
            )
            return Measurements(
                audits=audit_pages(lighthouse, plan, list_addresses(plan, demo_team, base)),
                waits=live_run.measure_waits(demo_team, visit, short=plan.short)
                if plan.live
                else {},
            )


def audit_pages(
    lighthouse: Lighthouse, plan: Plan, wanted: list[dict[str, str]]
) -> list[dict[str, Any]]:
    """Audit other screens as often as main ones if their first audit misses a target."""
    audited = list(print_scores(lighthouse.audit(wanted)))
    others = [each for each in wanted if each["name"] not in plan.names]
    again = summary.list_missed(others, audited) * (plan.rounds - 1)
    return [*audited, *print_scores(lighthouse.audit(again))]


def list_addresses(plan: Plan, demo_team: DemoTeam, base: str) -> list[dict[str, str]]:
    """Return the addresses; every round of the main screens begins with another one."""
    screens = [screen for screen in list_screens(demo_team) if screen.status == 200]
    if unknown := set(plan.names) - {screen.name for screen in screens}:
        raise MissingError(f"no screen has the name {', '.join(sorted(unknown))}")
    main = [screen for screen in screens if screen.name in plan.names]
    rounds = [main[number:] + main[:number] for number in range(plan.rounds)]
    others = [screen for screen in screens if plan.others and screen.name not in MAIN]
    return [
        {"name": screen.name, "url": base + screen.path, "form": form}
        for part in [*rounds, others]
        for screen in part
        for form in plan.forms
    ]


def print_scores(audits: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for audit in audits:
        scores = " ".join(str(audit[score]) for score in summary.SCORES)
        failed = " ".join(audit["failed"])
        moved = f"moved: {', '.join(audit['moved'])}" if audit["moved"] else ""
        print(f"  {audit['name']} {audit['form']}: {scores} {failed} {moved}".rstrip(), flush=True)
        yield audit


def build_cookie(demo_team: DemoTeam) -> str:
    client = Client()
    client.force_login(demo_team.personas.alice.user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


if __name__ == "__main__":
    sys.exit(main())
