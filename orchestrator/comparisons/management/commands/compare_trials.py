"""Compares the paired trials of a case; docs/detecting-changes.md. Needs no database.

`compare-trials FILE` (`-`: standard input) reads {"baseline": [...], "contender": [...],
"lower_is_better": true}, or {"metrics": {key: {...}}}, and prints the comparison as JSON.
"""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.progress import add_quiet, build_progress
from orchestrator.measurements.command_files import read_command_file
from orchestrator.measurements.number_files import TrialsFile, parse_trials_file
from orchestrator.stats.comparison import Comparison, Verdict, compare_blocks
from orchestrator.stats.interim import (
    INTERIM_ALPHA,
    INTERIM_EQUIVALENCE_ALPHA,
    compute_next_analysis,
)
from orchestrator.stats.multiple_testing import find_worst_verdict
from orchestrator.stats.needed_blocks import (
    DecisionRule,
    NeededBlocks,
    estimate_needed_blocks,
    export_needed_blocks,
)


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="a path, or - for standard input")

        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            trials = parse_trials_file(read_command_file(options["file"]))
        except InvalidRequestError as error:
            raise CommandError(f"{options['file']}: {error}") from error
        try:
            with build_progress(options, "Comparing"):
                answer = _answer(trials)
        except OverflowError as error:
            message = "two trials of a block are too far apart to have a ratio: check their units"
            raise CommandError(f"{options['file']}: {message}") from error
        self.stdout.write(json.dumps(answer, indent=2, allow_nan=False))


def _answer(trials: dict[str, TrialsFile]) -> dict[str, Any]:
    """Return one comparison; of several, each under its metric, and the worst verdict."""
    comparisons = {
        key: compare_blocks(
            each.baseline,
            each.contender,
            better=each.better,
            margin=each.margin,
            alpha=INTERIM_ALPHA,
            equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA,
        )
        for key, each in trials.items()
    }
    if "" in comparisons:
        return _export_comparison(comparisons[""])
    return {
        "verdict": find_worst_verdict(comparison.verdict for comparison in comparisons.values()),
        "metrics": {key: _export_comparison(comparison) for key, comparison in comparisons.items()},
    }


def _export_comparison(comparison: Comparison) -> dict[str, Any]:
    shown = asdict(comparison)
    shown["p"] = shown.pop("p_value")
    interval = [comparison.low, comparison.high]
    shown["interval"] = None if comparison.low is None else interval
    return {
        **shown,
        **export_needed_blocks(_estimate_needed_blocks(comparison), comparison.blocks),
        "next_analysis": compute_next_analysis(comparison),
    }


def _estimate_needed_blocks(comparison: Comparison) -> NeededBlocks | None:
    """Return None for a decided comparison."""
    if comparison.verdict is not Verdict.INCONCLUSIVE:
        return None
    rule = DecisionRule(claim_alpha=INTERIM_ALPHA, equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA)
    (needed,) = estimate_needed_blocks([comparison], rule)
    return needed
