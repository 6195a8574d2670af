"""The commands and options of the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any, NoReturn, Optional

from .errors import UsageError
from .judging import WORSE, parse_failing_verdicts
from .parsing import parse_duration, parse_run_id, parse_share
from .setup_script import DEFAULT_ACCOUNT

EPILOG = """\
PITWALL_URL is the address of your Pitwall and PITWALL_TOKEN an API token (Settings, API tokens).
Exit status: 0 pass; 1 a verdict in --fail-on; 2 no result (standard error shows why);
3 the run failed or was cancelled; 4 no usable data; 5 --timeout was reached.
"""
JSON_OPTION = "--json"


def build_parser() -> argparse.ArgumentParser:
    whole = Parser(
        prog="pitwall",
        description="Run benchmarks on a Pitwall and compare commits.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument(
        "--url", default=os.environ.get("PITWALL_URL", ""), help="instead of PITWALL_URL"
    )
    # Never the token itself: all users of the machine can read a command line.
    whole.add_argument(
        "--token-file", metavar="FILE", help="file with the token (default: PITWALL_TOKEN)"
    )
    whole.add_argument("--quiet", "-q", action="store_true", help="show no progress")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _run(_add_command(commands, "run", "start a run, and wait for it with --wait"))
    _add_wait(_add_command(commands, "wait", "wait until a run has ended"))
    _backfill(_add_command(commands, "backfill", "measure earlier commits, one run each"))
    _compare(_add_command(commands, "compare", "show changes; fail on a regression"))
    _propose(_add_command(commands, "propose", "write a definition for a repository"))
    _import(_add_command(commands, "import", "send finished results, or a history, from files"))
    _export(commands.add_parser("export", help="write trials, a report or a definition"))
    _add_command(commands, "hosts", "list the team's hosts, and which are free")
    _reserve(_add_command(commands, "reserve", "let no new job start on a host for a while"))
    _add_host(commands.add_parser("host", help="prepare this machine for Pitwall"))
    _add_local(_add_command(commands, "local", "measure on this machine, without a server"))
    return whole


def parse_arguments(argv: Optional[Sequence[str]]) -> argparse.Namespace:
    """Parse a command line; UsageError if it is wrong."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.json and getattr(args, "text_format", None):
        parser.error("--json and --format exclude each other")
    return args


class Parser(argparse.ArgumentParser):
    """Raises UsageError, so that the caller also writes this error as JSON."""

    def __init__(self, **options: Any) -> None:
        # An abbreviation of --json would be found after an error only.
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage())


def _add_command(commands: Any, name: str, help_text: str) -> argparse.ArgumentParser:
    """Return the parser of a new command. Every command has `--json`."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=help_text)
    command.add_argument(
        JSON_OPTION, action="store_true",
        help="print one JSON document, also for an error (docs/schemas/command-line.json)",
    )  # fmt: skip
    return command


def _run(run: argparse.ArgumentParser) -> None:
    run.add_argument("--benchmark", "-b", required=True, metavar="NAME")
    _add_project(run)
    run.add_argument(
        "--contender", "--ref", action="append", metavar="REF",
        help="pushed branch, tag or hash to measure (default: the commit that is "
        "checked out here); may be repeated",
    )  # fmt: skip
    baseline = _add_baseline(
        run, "the contender's first parent",
        "; merge-base:BRANCH and newest-measured:BRANCH: resolved by the server",
    )  # fmt: skip
    baseline.add_argument(
        "--alone", action="store_true", help="measure one commit, without a baseline"
    )
    run.add_argument(
        "--hosts", action="append", metavar="NAME,…",
        help="host names, profile:NAME or tag:NAME; may be repeated",
    )  # fmt: skip
    run.add_argument("--cases", metavar="EXPRESSION", help="such as 'connections == 16'")
    run.add_argument("--rounds", type=int, metavar="N", help="default: that of the definition")
    _add_builds(run)
    _add_until(run, "compared", "ranked")
    run.add_argument(
        "--places", type=int, metavar="N", help="of --until ranked: order the first N (default: 3)"
    )
    run.add_argument(
        "--budget", type=parse_duration, metavar="TIME", help="machine time, such as 30m"
    )
    run.add_argument(
        "--wait-limit", type=parse_duration, metavar="TIME",
        help="how long jobs wait for their hosts, such as 12h or 3d (default: 7d)",
    )  # fmt: skip
    run.add_argument("--priority", choices=("low", "normal", "high"))
    keys = run.add_mutually_exclusive_group()
    keys.add_argument(
        "--once", action="store_true",
        help="return the existing run of the same request, unless it failed or was cancelled",
    )  # fmt: skip
    keys.add_argument("--key", metavar="TEXT", help="idempotency key: one run per key")
    run.add_argument("--wait", action="store_true", help="wait until the run has ended")
    _add_timeout(run)


def _backfill(backfill: argparse.ArgumentParser) -> None:
    backfill.add_argument("--benchmark", "-b", required=True, metavar="NAME")
    _add_project(backfill)
    commits = backfill.add_mutually_exclusive_group(required=True)
    commits.add_argument("--last", type=int, metavar="N", help="the last commits of the branch")
    commits.add_argument(
        "--tags", nargs="?", const="*", metavar="PATTERN", help="all tags, or those such as 'v2.*'"
    )
    commits.add_argument("--range", metavar="FIRST..LAST", help="both included")
    backfill.add_argument("--branch", metavar="NAME", help="default: the default branch")
    backfill.add_argument("--every", type=int, metavar="K", help="1 in K of these commits")
    backfill.add_argument(
        "--hosts", action="append", required=True, metavar="NAME,…",
        help="host names, profile:NAME or tag:NAME; may be repeated",
    )  # fmt: skip
    backfill.add_argument("--cases", metavar="EXPRESSION", help="such as 'connections == 16'")
    backfill.add_argument("--rounds", type=int, metavar="N", help="default: that of the definition")
    backfill.add_argument(
        "--again", action="store_true",
        help="also commits that are measured already, or failed in an earlier backfill",
    )  # fmt: skip
    backfill.add_argument(
        "--start", action="store_true", help="start it (default: only show the estimate)"
    )


def _add_wait(wait: argparse.ArgumentParser) -> None:
    wait.add_argument("run", type=parse_run_id, help="id or address of the run")
    _add_timeout(wait)


def _compare(compare: argparse.ArgumentParser) -> None:
    compare.add_argument("run", nargs="?", type=parse_run_id, help="id or address of a run")
    compare.add_argument("--benchmark", "-b", metavar="NAME")
    _add_project(compare)
    compare.add_argument("--baseline", metavar="COMMIT")
    compare.add_argument("--contender", metavar="COMMIT")
    compare.add_argument("--case", metavar="KEY")
    compare.add_argument("--host", metavar="NAME")
    compare.add_argument("--profile", metavar="NAME")
    _add_judging(compare)
    compare.add_argument(
        "--format", dest="text_format", choices=("table", "markdown", "csv"), help="default: table"
    )
    compare.add_argument(
        "--append", metavar="FILE", help="append the Markdown to this file, such as a CI summary"
    )


def _propose(propose: argparse.ArgumentParser) -> None:
    propose.add_argument("project", metavar="PROJECT", help="its repository is inspected")
    propose.add_argument(
        "--ref", metavar="REF", help="branch, tag or hash (default: the default branch)"
    )


def _import(files: argparse.ArgumentParser) -> None:
    files.add_argument(
        "files", nargs="+", metavar="FILE",
        help=".jsonl or .csv, also with .gz; for a history also the results folder of asv",
    )  # fmt: skip
    files.add_argument(
        "--project", metavar="NAME",
        help="project of results that name none; required for a history",
    )  # fmt: skip
    history = files.add_argument_group("history of another tool")
    history.add_argument(
        "--as-history", action="store_true",
        help="files of asv, Bencher, Codespeed, Conbench, github-action-benchmark or "
        "the-benchmarker, or CSV or JSON of results",
    )  # fmt: skip
    history.add_argument("--preview", action="store_true", help="show the preview, import nothing")
    history.add_argument(
        "--unknown-commits", choices=("keep", "skip"),
        help="keep commits that are not in the repository, with their dates, or skip their "
        "results (default: keep, unless all are unknown)",
    )  # fmt: skip
    history.add_argument("--format", metavar="NAME", help="default: recognised by the content")
    history.add_argument("--benchmark", metavar="NAME", help="instead of the names in the file")
    history.add_argument("--host", metavar="NAME", help="instead of the machines in the file")
    history.add_argument("--commit", metavar="REF", help="commit of results that name none")
    history.add_argument(
        "--better", choices=("lower", "higher"), help="of values whose direction is not given"
    )


def _export(export: argparse.ArgumentParser) -> None:
    kinds = export.add_subparsers(dest="kind", metavar="KIND", required=True)
    trials = _add_command(kinds, "trials", "the trials of a run as JSON lines")
    trials.add_argument("run", type=parse_run_id)
    trials.add_argument("--invalid", action="store_true", help="include invalid trials")
    report = _add_command(kinds, "report", "a saved report")
    report.add_argument("name")
    report.add_argument(
        "--format", dest="text_format", choices=("csv", "markdown"), help="default: csv"
    )
    definition = _add_command(kinds, "definition", "the YAML of a benchmark")
    definition.add_argument("benchmark", metavar="PROJECT/BENCHMARK")
    definition.add_argument("--version", type=int, metavar="N", help="default: the newest")
    for kind in (trials, report, definition):
        kind.add_argument("--output", "-o", metavar="FILE", default="-")


def _reserve(reserve: argparse.ArgumentParser) -> None:
    reserve.add_argument("host", metavar="HOST")
    either = reserve.add_mutually_exclusive_group(required=True)
    either.add_argument(
        "--for", dest="time", type=parse_duration, metavar="TIME", help="such as 2h; at most 168h"
    )
    either.add_argument("--end", action="store_true", help="end the reservation")
    reserve.add_argument("--reason", metavar="TEXT", default="", help="shown to the team")


def _add_host(host: argparse.ArgumentParser) -> None:
    actions = host.add_subparsers(dest="action", metavar="ACTION", required=True)
    setup = _add_command(actions, "setup", "create the account, its limits and its rights (root)")
    setup.add_argument(
        "--user", metavar="NAME", default=DEFAULT_ACCOUNT,
        help="account that Pitwall logs in as (default: %(default)s); created if it is missing",
    )  # fmt: skip
    setup.add_argument("--key", metavar="FILE", help="file with the public key of Pitwall")
    setup.add_argument(
        "--no-tuning", action="store_true",
        help="the account may change neither governor nor turbo nor SMT",
    )  # fmt: skip
    setup.add_argument("--undo", action="store_true", help="remove what was installed")
    either = setup.add_mutually_exclusive_group()
    either.add_argument(
        "--print", dest="print_only", action="store_true", help="only print the script"
    )
    either.add_argument("--yes", action="store_true", help="run the script without a question")


def _add_local(local: argparse.ArgumentParser) -> None:
    local.add_argument("definition", nargs="?", default=".pitwall.yaml", metavar="FILE")
    local.add_argument("--contender", metavar="REF", help="default: the checked-out commit")
    _add_baseline(
        local, "none, measure the contender alone", "; merge-base:BRANCH: like --merge-base"
    )
    local.add_argument("--rounds", type=int, metavar="N", help="default: that of the definition")
    _add_builds(local)
    _add_until(local)
    local.add_argument("--cases", metavar="EXPRESSION")
    local.add_argument(
        "--shared",
        action="store_true",
        help="other work runs on this machine: keep the trials that it disturbs",
    )
    local.add_argument("--keep", metavar="FOLDER", help="keep builds and raw output there")
    local.add_argument(
        "--checkout", metavar="FOLDER", default=os.environ.get("PITWALL_CHECKOUT"),
        help="checkout of Pitwall (default: PITWALL_CHECKOUT, or that of this program)",
    )  # fmt: skip
    _add_judging(local)


def _add_project(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--project", metavar="NAME", help="required if two projects have a benchmark of this name"
    )


def _add_builds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--builds", type=int, metavar="N",
        help="build each commit so often, to separate the difference between builds from a change "
        "(default: that of the definition)",
    )  # fmt: skip


def _add_until(parser: argparse.ArgumentParser, *contests: str) -> None:
    """Add --until; `contests` are the choices that compare the values of a contest."""
    parser.add_argument(
        "--until", choices=("rounds", "decided", "screened", *contests),
        help="decided: measure each case until its verdict is known, at most 20 rounds unless "
        "--rounds is lower; screened: the same, but 7 rounds without a sign of a change"
        + ("; compared, ranked: until all values of a contest are decided against the baseline, or "
           "until the order of the first places is" if contests else ""),
    )  # fmt: skip


def _add_baseline(
    parser: argparse.ArgumentParser, default: str, rules: str
) -> argparse._MutuallyExclusiveGroup:
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--baseline",
        metavar="REF",
        help=f"branch, tag or hash to compare with (default: {default}){rules}",
    )
    either.add_argument(
        "--merge-base",
        metavar="BRANCH",
        help="compare with the commit where the contender left BRANCH",
    )
    return either


def _add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=parse_duration,
        metavar="TIME",
        help="stop waiting after this time; the run continues",
    )


def _add_judging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fail-on", type=parse_failing_verdicts, default=WORSE, metavar="VERDICT,…",
        help="broken, saturated, regressed (default, includes what is worse), inconclusive, "
        "improved; or never",
    )  # fmt: skip
    parser.add_argument(
        "--min-change", type=parse_share, metavar="SHARE",
        help="count a change only if its whole interval is beyond this size, such as 2%%",
    )  # fmt: skip
