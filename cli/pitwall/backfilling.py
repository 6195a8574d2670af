"""`pitwall backfill`: show the estimate of a backfill; `--start` starts it."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from .bar import Progress
from .client import Client
from .errors import NoAnswerError
from .output import Output, Result
from .parsing import split_names
from .units import format_duration


def run_backfill(
    args: argparse.Namespace, client: Client, progress: Progress, output: Output
) -> Result:
    """Show the estimate, and with `--start` start the runs and print the id of the backfill."""
    request = _build_request(args)
    plan = client.post("backfills/plan", request)
    progress.print_line(_describe_cost(plan))
    for reason, count in Counter(each["reason"] for each in plan["skipped"]).items():
        progress.print_line(f"skipped: {count} × {reason}")
    for warning in plan["warnings"]:
        progress.print_line(f"warning: {warning}")
    if not args.start:
        progress.print_line("nothing was started; add --start to start it")
        return Result({"plan": plan, "backfill": None})
    if not plan["commits"]:
        # A build may repeat the command: then there is nothing left to do.
        return Result({"plan": plan, "backfill": None})
    backfill = client.post("backfills", request)
    progress.print_line(f"{backfill['selection']}: {backfill['web_url']}")
    output.print_text(backfill["id"])
    return Result({"plan": plan, "backfill": backfill})


def _describe_cost(plan: Any) -> str:
    commits = len(plan["commits"])
    text = (
        f"{commits} commit{'' if commits == 1 else 's'}, {plan['trials']} trials, "
        f"{format_duration(plan['machine_seconds'])} of machine time"
    )
    return f"{text}, done about {plan['ends_at'][:16]} UTC" if plan["ends_at"] else text


def _build_request(args: argparse.Namespace) -> dict[str, Any]:
    """Return the body of `POST /backfills`; the server chooses the values of missing options."""
    wanted = {
        "benchmark": args.benchmark,
        "project": args.project,
        **_build_selection(args),
        "every": args.every,
        "branch": args.branch,
        "hosts": split_names(args.hosts),
        "cases": args.cases,
        "rounds": args.rounds,
        "again": args.again or None,
    }
    return {name: value for name, value in wanted.items() if value not in (None, [], "")}


def _build_selection(args: argparse.Namespace) -> dict[str, Any]:
    if args.last is not None:
        return {"commits": "last", "count": args.last}
    if args.tags is not None:
        return {"commits": "tags", "tags": args.tags}
    first, dots, last = args.range.partition("..")
    if not first or not dots:
        raise NoAnswerError(f"--range {args.range}: expected FIRST..LAST, such as v1.0..main")
    return {"commits": "range", "since": first, "until": last}
