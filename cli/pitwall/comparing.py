"""`pitwall compare`: print the changes, and whether the build passes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .bar import Progress
from .client import Client
from .errors import NoAnswerError
from .judging import Judgement, judge
from .output import Output, Result
from .tables import render_comparison, render_judgement


def compare(args: argparse.Namespace, client: Client, progress: Progress, output: Output) -> Result:
    query = _query(args)
    report = client.get("comparisons", query)
    judged = judge(report, args.fail_on, args.min_change)
    if args.text_format == "markdown":
        output.print_text(_render_markdown(client, query, judged, args))
    elif args.text_format == "csv":
        output.print_text(client.text("comparisons/csv", query), end="")
    else:
        output.print_text(f"{render_comparison(report)}\n\n{report['web_url']}")
    if args.append:
        with Path(args.append).open("a", encoding="utf-8") as file:
            file.write(_render_markdown(client, query, judged, args) + "\n")
    print_judgement(judged, args)
    return Result(build_document(report, judged, args), judged.status)


def print_judgement(judged: Judgement, args: argparse.Namespace) -> None:
    """Print the judgement on standard error, because standard output is the table or the file."""
    sys.stdout.flush()
    for line in render_judgement(judged, args.min_change):
        print(f"pitwall: {line}", file=sys.stderr)


def build_document(report: Any, judged: Judgement, args: argparse.Namespace) -> Any:
    """Return the server's document with the judgement as `build`."""
    build = {
        "status": judged.status,
        "fail_on": list(args.fail_on),
        "min_change": args.min_change,
        "because": list(judged.because),
        "not_counted": list(judged.spared),
        "not_compared": list(judged.unknown),
    }
    return {**report, "build": build}


def _render_markdown(
    client: Client, query: Any, judged: Judgement, args: argparse.Namespace
) -> str:
    lines = [f"- `{line.replace('`', '')}`" for line in render_judgement(judged, args.min_change)]
    text = client.text("comparisons/markdown", query).rstrip()
    return "\n".join([text, "", *lines]) if lines else text


def _query(args: argparse.Namespace) -> dict[str, Any]:
    if args.run is None and args.baseline is None:
        raise NoAnswerError("name a run, or --baseline and --contender of a --benchmark")
    wanted = ("run", "benchmark", "project", "baseline", "contender", "case", "host", "profile")
    return {name: getattr(args, name) for name in wanted if getattr(args, name) is not None}
