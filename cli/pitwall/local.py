"""`pitwall local`: measure on this machine without a server, and print the report.

It starts a checkout of Pitwall for builds, loads, verdicts and comparisons, because one file with
the standard library cannot contain the statistics for a verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Optional

from . import git
from .bar import Progress
from .comparing import build_document, print_judgement
from .errors import NoAnswerError
from .judging import judge
from .output import Output, Result
from .tables import render_comparison, render_table
from .units import UNKNOWN, format_value

PYTHON = Path(".venv/Scripts/python.exe" if os.name == "nt" else ".venv/bin/python")
HEADS = ("case", "metric", "value", "95 % interval", "trials")


def measure_here(args: argparse.Namespace, progress: Progress, output: Output) -> Result:
    if not Path(args.definition).is_file():
        raise NoAnswerError(f"there is no definition {args.definition} here; name its file")
    checkout = _find_checkout(args.checkout)
    report = _run_measurement(checkout, _build_arguments(args), progress)
    if report["contender"] is None:
        output.print_text(_render_single(report))
        return Result(report)
    judged = judge(report, args.fail_on, args.min_change)
    output.print_text(render_comparison(report))
    print_judgement(judged, args)
    return Result(build_document(report, judged, args), judged.status)


def _build_arguments(args: argparse.Namespace) -> list[str]:
    """Return the arguments of the checkout's command."""
    contender = args.contender or git.resolve_head()
    baseline = _resolve_baseline(args, contender)
    if args.until not in (None, "rounds") and not baseline:
        raise NoAnswerError(
            f"--until {args.until} compares two commits: give --baseline or --merge-base"
        )
    words = ["--definition", str(Path(args.definition).resolve()), "--repository", os.getcwd()]
    words += ["--contender", contender, "--cases", args.cases or ""]
    words += ["--baseline", baseline] if baseline else []
    words += ["--rounds", str(args.rounds)] if args.rounds is not None else []
    words += ["--builds", str(args.builds)] if args.builds is not None else []
    words += ["--until", args.until] if args.until else []
    words += ["--shared"] if args.shared else []
    return words + (["--keep", str(Path(args.keep).resolve())] if args.keep else [])


def _resolve_baseline(args: argparse.Namespace, contender: str) -> Optional[str]:
    """Evaluate the rule in the local repository; rules that need histories are rejected."""
    rule, colon, branch = (args.baseline or "").partition(":")
    if args.merge_base or (rule == "merge-base" and branch):
        return git.merge_base(args.merge_base or branch, contender)
    if colon:
        raise NoAnswerError(
            f"--baseline {args.baseline}: only a server knows earlier measurements; name a "
            "branch, tag or hash, or use merge-base:BRANCH"
        )
    return args.baseline


def _find_checkout(given: Optional[str]) -> Path:
    """Return the named checkout, or the one that contains this program."""
    own = Path(__file__).resolve().parents[2]
    folder = Path(given).resolve() if given else own
    if not (folder / "devstack" / "here.py").is_file():
        raise NoAnswerError(
            "pitwall local needs a checkout of Pitwall on this machine, with its agent, load tools "
            "and statistics: clone it, run `make tools` in it once, and name it with --checkout "
            "or PITWALL_CHECKOUT"
        )
    if not (folder / PYTHON).exists():
        raise NoAnswerError(f"{folder} has no environment yet: run `make tools` there once")
    return folder


def _run_measurement(checkout: Path, words: list[str], progress: Progress) -> Any:
    """Run the checkout's command; it prints lines of progress, and the report as the last one."""
    environment = {key: text for key, text in os.environ.items() if key != "PITWALL_TOKEN"}
    argv = [str(checkout / PYTHON), "-m", "devstack.here", *words]
    try:
        process = subprocess.Popen(
            argv, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise NoAnswerError(f"{argv[0]} cannot be started: {error}") from error
    assert process.stdout is not None
    message: Any = {}
    try:
        for line in process.stdout:
            message = json.loads(line)
            if "done" in message:
                progress.show(message["done"], message["total"], message["text"])
    except BaseException:
        process.terminate()
        raise
    finally:
        # It ends its agent and all processes of it before itself.
        process.wait()
        progress.end()
    if process.returncode or "report" not in message:
        raise NoAnswerError(message.get("error") or "the measurement was aborted; see above")
    return message["report"]


def _render_single(report: Any) -> str:
    rows = [
        (
            case["case"]["label"],
            metric["title"],
            format_value(metric["value"], metric["unit"]),
            _format_metric_interval(metric),
            str(metric["trials"]),
        )
        for case in report["cases"]
        for metric in case["metrics"]
    ]
    lines = [report["summary"], *(f"Note: {note}" for note in report["notes"])]
    return "\n".join(lines) + ("\n\n" + render_table(HEADS, rows) if rows else "")


def _format_metric_interval(metric: Any) -> str:
    if metric["interval"] is None:
        return UNKNOWN
    return " to ".join(format_value(each, metric["unit"]) for each in metric["interval"])
