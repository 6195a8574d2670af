"""`pitwall run`: start a run; `--wait` and `pitwall wait` wait for its end."""

from __future__ import annotations

import argparse
import hashlib
import json
import uuid
from typing import Any

from . import git
from .bar import Progress
from .client import Client
from .errors import NoAnswerError
from .following import wait_for_end
from .output import Output, Result
from .parsing import split_names


def start_run(
    args: argparse.Namespace, client: Client, progress: Progress, output: Output
) -> Result:
    """Start a run; standard output contains only its id, for scripts."""
    run = _send_once(client, build_request(args)) if args.once else _send_request(client, args)
    progress.print_line(f"{_describe_commits(run)}: {run['web_url']}")
    output.print_text(run["id"])
    if not args.wait:
        return Result({**run, "failed_cases": []})
    return Result(wait_for_end(client, run["id"], progress, timeout_s=args.timeout))


def wait_for_run(
    args: argparse.Namespace, client: Client, progress: Progress, output: Output
) -> Result:
    return Result(wait_for_end(client, args.run, progress, timeout_s=args.timeout))


def build_request(args: argparse.Namespace) -> dict[str, Any]:
    """Return the body of `POST /runs`; the server chooses the values of missing options."""
    contenders = split_names(args.contender) or [git.resolve_head()]
    baseline = args.baseline
    if args.merge_base:
        baseline = git.merge_base(args.merge_base, contenders[0])
    if args.alone:
        if len(contenders) > 1:
            raise NoAnswerError(f"--alone measures one commit; there are {len(contenders)}")
        baseline, contenders = contenders[0], []
    wanted = {
        "benchmark": args.benchmark,
        "project": args.project,
        "baseline": baseline,
        "contenders": contenders,
        "hosts": split_names(args.hosts),
        "cases": args.cases,
        "rounds": args.rounds,
        "builds": args.builds,
        "until": args.until,
        "places": args.places,
        "budget_s": args.budget,
        "wait_limit_s": args.wait_limit,
        "priority": args.priority,
    }
    return {name: value for name, value in wanted.items() if value not in (None, [], "")}


def _send_request(client: Client, args: argparse.Namespace) -> Any:
    """Send the request with a new key if none is given, so that a retry starts no second run."""
    key = args.key or f"pitwall-cli {uuid.uuid4()}"
    return client.post("runs", build_request(args), {"Idempotency-Key": key})


def _send_once(client: Client, request: dict[str, Any]) -> Any:
    """Return the existing run of the same request; a new one if that ended without a result."""
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    after = ""
    while True:
        run = client.post("runs", request, {"Idempotency-Key": f"once {digest[:32]}{after}"})
        if run["ended_at"] is None or run["state"] == "finished":
            return run
        after = f" after {run['id']}"


def _describe_commits(run: Any) -> str:
    baseline = _shorten([run["baseline"]])
    return f"{_shorten(run['contenders'])} against {baseline}" if run["contenders"] else baseline


def _shorten(commits: list[Any]) -> str:
    return ", ".join(commit["short"] for commit in commits)
