"""What can be asked for on the command line."""

from __future__ import annotations

import argparse
import os

from .judging import verdicts_to_fail_on
from .words import duration, run_id, share

EPILOG = """\
PITWALL_URL is the address of your Pitwall and PITWALL_TOKEN an API token (Settings, API tokens).
Exit status: 0 pass; 1 a verdict that --fail-on names; 2 no answer (standard error says why).
"""


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="pitwall",
        description="Runs benchmarks on a Pitwall and says what changed.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument(
        "--url", default=os.environ.get("PITWALL_URL", ""), help="instead of PITWALL_URL"
    )
    # Never the token itself: everybody on the machine can read a command line.
    whole.add_argument("--token-file", metavar="FILE", help="has the token; else PITWALL_TOKEN")
    whole.add_argument("--quiet", "-q", action="store_true", help="tell no progress")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _run(commands.add_parser("run", help="start a run, and wait for it with --wait"))
    _wait(commands.add_parser("wait", help="wait until a run has ended"))
    _compare(commands.add_parser("compare", help="what changed; fails on a regression"))
    _import(commands.add_parser("import", help="send finished results from files"))
    _export(commands.add_parser("export", help="trials, a report, or a definition"))
    hosts = commands.add_parser("hosts", help="the team's hosts, and which are free")
    hosts.add_argument("--json", action="store_true", help="as the API tells")
    _local(commands.add_parser("local", help="measure on this machine, without any server"))
    return whole


def _run(run: argparse.ArgumentParser) -> None:
    run.add_argument("--benchmark", "-b", required=True, metavar="NAME")
    _project(run)
    run.add_argument(
        "--contender", "--ref", action="append", metavar="REF",
        help="branch, tag or hash to judge; it must have been pushed (default: the commit that is "
        "checked out here); may be repeated",
    )  # fmt: skip
    _baseline(
        run, "the contender's first parent",
        "; merge-base:BRANCH or newest-measured:BRANCH: the server finds it",
    )  # fmt: skip
    run.add_argument(
        "--hosts", action="append", metavar="NAME,…",
        help="hosts to measure on, also profile:NAME and tag:NAME; may be repeated",
    )  # fmt: skip
    run.add_argument("--cases", metavar="EXPRESSION", help="such as 'connections == 16'")
    run.add_argument("--rounds", type=int, metavar="N", help="as the definition says if left out")
    _until(run)
    run.add_argument("--budget", type=duration, metavar="TIME", help="machine time, such as 30m")
    run.add_argument("--priority", choices=("low", "normal", "high"))
    keys = run.add_mutually_exclusive_group()
    keys.add_argument(
        "--once", action="store_true",
        help="take the run of the same request from before, unless it failed or was cancelled",
    )  # fmt: skip
    keys.add_argument("--key", metavar="TEXT", help="idempotency key: the same never runs twice")
    run.add_argument("--wait", action="store_true", help="until the run has ended")
    _timeout(run)
    run.add_argument("--json", action="store_true", help="print the run, not only its id")


def _wait(wait: argparse.ArgumentParser) -> None:
    wait.add_argument("run", type=run_id, help="id or address of the run")
    _timeout(wait)
    wait.add_argument("--json", action="store_true", help="print the run as it ended")


def _compare(compare: argparse.ArgumentParser) -> None:
    compare.add_argument("run", nargs="?", type=run_id, help="id or address of a run")
    compare.add_argument("--benchmark", "-b", metavar="NAME")
    _project(compare)
    compare.add_argument("--baseline", metavar="COMMIT")
    compare.add_argument("--contender", metavar="COMMIT")
    compare.add_argument("--case", metavar="KEY")
    compare.add_argument("--host", metavar="NAME")
    compare.add_argument("--profile", metavar="NAME")
    _judging(compare)
    compare.add_argument("--format", choices=("table", "markdown", "csv", "json"), default="table")
    compare.add_argument(
        "--append", metavar="FILE", help="add the Markdown to this file, too (a CI's summary)"
    )


def _import(files: argparse.ArgumentParser) -> None:
    files.add_argument("files", nargs="+", metavar="FILE", help=".jsonl or .csv, also with .gz")
    files.add_argument("--project", metavar="NAME", help="of results that name none")


def _export(export: argparse.ArgumentParser) -> None:
    kinds = export.add_subparsers(dest="what", metavar="WHAT", required=True)
    trials = kinds.add_parser("trials", help="the trials of a run as JSON lines")
    trials.add_argument("run", type=run_id)
    trials.add_argument("--invalid", action="store_true", help="invalid ones as well")
    report = kinds.add_parser("report", help="a saved report")
    report.add_argument("name")
    report.add_argument("--format", choices=("csv", "markdown", "json"), default="csv")
    definition = kinds.add_parser("definition", help="the YAML of a benchmark")
    definition.add_argument("benchmark", metavar="PROJECT/BENCHMARK")
    definition.add_argument("--version", type=int, metavar="N", help="the newest if left out")
    for kind in (trials, report, definition):
        kind.add_argument("--output", "-o", metavar="FILE", default="-")


def _local(local: argparse.ArgumentParser) -> None:
    local.add_argument("definition", nargs="?", default=".pitwall.yaml", metavar="FILE")
    local.add_argument("--contender", metavar="REF", help="the checked-out commit if left out")
    _baseline(
        local, "nothing: the contender is measured alone", "; merge-base:BRANCH: as --merge-base"
    )
    local.add_argument("--rounds", type=int, metavar="N", help="as the definition says if left out")
    _until(local)
    local.add_argument("--cases", metavar="EXPRESSION")
    local.add_argument("--keep", metavar="FOLDER", help="leave builds and raw output there")
    local.add_argument(
        "--checkout", metavar="FOLDER", default=os.environ.get("PITWALL_CHECKOUT"),
        help="of Pitwall (default: PITWALL_CHECKOUT, or the one that this program lies in)",
    )  # fmt: skip
    _judging(local)
    local.add_argument("--format", choices=("table", "json"), default="table")


def _project(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--project", metavar="NAME", help="where two projects have a benchmark of this name"
    )


def _until(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--until", choices=("rounds", "decided", "screened"),
        help="decided: each case takes as many rounds as its verdict needs, 20 at most unless "
        "--rounds says fewer; screened: the same, but 7 without a sign of a change",
    )  # fmt: skip


def _baseline(parser: argparse.ArgumentParser, default: str, rules: str) -> None:
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--baseline",
        metavar="REF",
        help=f"branch, tag or hash to compare with (default: {default}){rules}",
    )
    either.add_argument(
        "--merge-base", metavar="BRANCH", help="compare with the commit where BRANCH was left"
    )


def _timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=duration, metavar="TIME", help="wait so long at most; the run goes on"
    )


def _judging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fail-on", type=verdicts_to_fail_on, default=("regressed",), metavar="VERDICT,…",
        help="regressed (default), inconclusive, improved; or never",
    )  # fmt: skip
    parser.add_argument(
        "--min-change", type=share, metavar="SHARE",
        help="a change counts only if all of its interval lies beyond, such as 2%%",
    )  # fmt: skip
