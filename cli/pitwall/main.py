"""Run a command of the command line, and return its exit status."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from .arguments import JSON_OPTION, parse_arguments
from .backfilling import run_backfill
from .bar import Progress
from .client import Client
from .comparing import compare
from .errors import INTERRUPTED, NO_ANSWER, PASS, NoAnswerError, UsageError
from .files import export, send_files
from .history_import import send_histories
from .host_setup import set_up_host
from .hosts import list_hosts, reserve_host
from .local import measure_here
from .output import Output, Result
from .proposing import propose
from .starting import start_run, wait_for_run

COMMANDS = {
    "run": start_run,
    "wait": wait_for_run,
    "backfill": run_backfill,
    "compare": compare,
    "propose": propose,
    "export": export,
    "hosts": list_hosts,
    "reserve": reserve_host,
}


def main(argv: Optional[Sequence[str]] = None) -> int:
    _write_utf8()
    words = sys.argv[1:] if argv is None else argv
    output = Output(as_json=JSON_OPTION in words)
    if argv is None:
        # A CI that cancels a build sends SIGTERM; all started processes must end as well.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    progress = Progress()
    try:
        args = parse_arguments(words)
        progress = Progress(quiet=args.quiet)
        result = _run_command(args, progress, output)
        output.print_document(result.document)
        return result.status
    except UsageError as error:
        sys.stderr.write(error.usage)
        return _end(str(error), error.exit_status, progress, output)
    except NoAnswerError as error:
        return _end(str(error), error.exit_status, progress, output, **error.details)
    except BrokenPipeError:
        # The reader of our output has closed it; write nothing more to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASS
    except OSError as error:
        return _end(str(error), NO_ANSWER, progress, output)
    except KeyboardInterrupt:
        goes_on = "; a started run continues" if {"run", "wait"} & set(words) else ""
        return _end(f"interrupted{goes_on}", INTERRUPTED, progress, output)


def _end(message: str, status: int, progress: Progress, output: Output, **details: Any) -> int:
    """Report an error as a line, and with `--json` as a document too; return the exit status."""
    progress.print_result(message)
    output.print_document({"error": {"message": message, "exit_status": status, **details}})
    return status


def _run_command(args: argparse.Namespace, progress: Progress, output: Output) -> Result:
    if args.command == "local":
        return measure_here(args, progress, output)
    if args.command == "host":
        return set_up_host(args, progress, output)
    client = Client(args.url, _read_token(args.token_file), report=progress.print_line)
    if args.command == "import":
        send = send_histories if args.as_history else send_files
        return send(args, client, progress, output)
    return COMMANDS[args.command](args, client, progress, output)


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
