"""Finds the changes in a series of numbers; docs/detecting-changes.md. Needs no database.

`detect FILE` (`-`: standard input) reads {"values": [...], "lower_is_better": true}, oldest first,
null for a gap, and prints the change points as JSON.
"""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cli.pitwall.units import format_count
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.progress import add_quiet, build_progress
from orchestrator.measurements.command_files import read_command_file
from orchestrator.measurements.number_files import SeriesFile, parse_series_file
from orchestrator.stats.changes import Change, find_changes


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="a path, or - for standard input")
        parser.add_argument(
            "--least", type=float, default=0.01, metavar="SHARE",
            help="the smallest change of interest; default 0.01",
        )  # fmt: skip
        parser.add_argument(
            "--floor", type=float, default=0.005, metavar="SHARE",
            help="the lowest noise to assume; default 0.005",
        )  # fmt: skip

        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        for option in ("least", "floor"):
            if not 0 < options[option] < 1:
                raise CommandError(f"--{option}: expected a share between 0 and 1, such as 0.01")
        try:
            series = parse_series_file(read_command_file(options["file"]))
        except InvalidRequestError as error:
            raise CommandError(f"{options['file']}: {error}") from error
        with build_progress(options, f"Analysing {format_count(len(series.values))} values"):
            report = _export_changes(series, options["floor"], options["least"])
        self.stdout.write(json.dumps(report, indent=2, allow_nan=False))


def _export_changes(series: SeriesFile, floor: float, least: float) -> dict[str, Any]:
    changes = find_changes(
        series.values,
        lower_is_better=series.lower_is_better,
        floor=floor,
        least=least,
        breaks=series.breaks,
    )
    return {
        "change_points": [_format_point(change) for change in changes.points],
        "outliers": list(changes.outliers),
        "unstable": changes.unstable,
        "noise": changes.noise,
    }


def _format_point(change: Change) -> dict[str, Any]:
    return {
        "index": change.index,
        "change": change.change,
        "low": change.low,
        "high": change.high,
        "p": change.p_value,
        "kind": change.kind,
        "regressed": change.regressed,
        "before": change.before,
        "after": change.after,
    }
