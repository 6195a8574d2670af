"""`pitwall compare`: print the changes, and whether the build passes."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from .client import Client
from .errors import NoAnswerError
from .judging import Judgement, judge
from .tables import render_comparison, render_judgement


def compare(asked: argparse.Namespace, client: Client) -> int:
    query = _query(asked)
    report = client.get("comparisons", query)
    judged = judge(report, asked.fail_on, asked.min_change)
    if asked.format == "json":
        print(as_json(report, judged, asked))
    elif asked.format == "markdown":
        print(_render_markdown(client, query, judged, asked))
    elif asked.format == "csv":
        sys.stdout.write(client.text("comparisons/csv", query))
    else:
        print(f"{render_comparison(report)}\n\n{report['web_url']}")
    if asked.append:
        with Path(asked.append).open("a", encoding="utf-8") as file:
            file.write(_render_markdown(client, query, judged, asked) + "\n")
    print_judgement(judged, asked)
    return judged.status


def print_judgement(judged: Judgement, asked: argparse.Namespace) -> None:
    """Print the judgement on standard error, because standard output is the table or the file."""
    sys.stdout.flush()
    for line in render_judgement(judged, asked.min_change):
        print(f"pitwall: {line}", file=sys.stderr)


def as_json(report: Any, judged: Judgement, asked: argparse.Namespace) -> str:
    """Return the server's document with the judgement as `build`."""
    build = {
        "status": judged.status,
        "fail_on": list(asked.fail_on),
        "min_change": asked.min_change,
        "because": list(judged.because),
        "not_counted": list(judged.spared),
        "not_compared": list(judged.unknown),
    }
    return json.dumps({**report, "build": build}, indent=1, ensure_ascii=False)


def _render_markdown(
    client: Client, query: Any, judged: Judgement, asked: argparse.Namespace
) -> str:
    lines = [f"- `{line.replace('`', '')}`" for line in render_judgement(judged, asked.min_change)]
    text = client.text("comparisons/markdown", query).rstrip()
    return "\n".join([text, "", *lines]) if lines else text


def _query(asked: argparse.Namespace) -> dict[str, Any]:
    if asked.run is None and asked.baseline is None:
        raise NoAnswerError("name a run, or --baseline and --contender of a --benchmark")
    wanted = ("run", "benchmark", "project", "baseline", "contender", "case", "host", "profile")
    return {name: getattr(asked, name) for name in wanted if getattr(asked, name) is not None}
