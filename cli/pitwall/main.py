"""Run a command of the command line, and return its exit status."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from .arguments import build_parser
from .backfilling import run_backfill
from .bar import Progress
from .client import Client
from .comparing import compare
from .errors import INTERRUPTED, NO_ANSWER, PASS, NoAnswerError
from .files import export, send_files
from .following import wait_for_end
from .history_import import send_histories
from .hosts import list_hosts
from .local import measure_here
from .proposing import propose
from .starting import start_run


def main(argv: Optional[Sequence[str]] = None) -> int:
    _write_utf8()
    args = build_parser().parse_args(argv)
    progress = Progress(quiet=args.quiet)
    if argv is None:
        # A CI that cancels a build sends SIGTERM; all started processes must end as well.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run_command(args, progress)
    except NoAnswerError as error:
        progress.end()
        print(f"pitwall: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        # The reader of our output has closed it; write nothing more to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASS
    except OSError as error:
        print(f"pitwall: {error}", file=sys.stderr)
        return NO_ANSWER
    except KeyboardInterrupt:
        progress.end()
        goes_on = "; a started run continues" if args.command in ("run", "wait") else ""
        print(f"pitwall: interrupted{goes_on}", file=sys.stderr)
        return INTERRUPTED


def _run_command(args: argparse.Namespace, progress: Progress) -> int:
    if args.command == "local":
        return measure_here(args, progress)
    client = Client(args.url, _read_token(args.token_file), report=progress.print_line)
    if args.command == "run":
        return start_run(args, client, progress)
    if args.command == "backfill":
        return run_backfill(args, client, progress)
    if args.command == "wait":
        return _wait_for_run(args, client, progress)
    if args.command == "compare":
        return compare(args, client)
    if args.command == "propose":
        return propose(args, client, progress)
    if args.command == "import":
        send = send_histories if args.as_history else send_files
        return send(args, client, progress)
    if args.command == "export":
        return export(args, client, progress)
    return list_hosts(args, client)


def _wait_for_run(args: argparse.Namespace, client: Client, progress: Progress) -> int:
    run = wait_for_end(client, args.run, progress, timeout_s=args.timeout)
    if args.json:
        print(json.dumps(run, indent=1))
    return PASS


def _read_token(file: Optional[str]) -> str:
    if file is None:
        return os.environ.get("PITWALL_TOKEN", "")
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NoAnswerError(f"--token-file {file} cannot be read: {error}") from error


def _write_utf8() -> None:
    """Write UTF-8: a CI often has no locale, and print() would fail at the first µ."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
