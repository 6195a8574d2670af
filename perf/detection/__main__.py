"""Accuracy of change detection in histories and between two commits, compared with other detectors.

It also measures how well the number of blocks is estimated that decides a comparison, and how often
the verdicts of whole runs and of repeated runs are wrong, and the order of trials or the noise
between runs causes a false claim.

`make bench-detection`, or `ARGS=--short` to check only that it works, `ARGS=--keep` to keep the
result. Needs no database. All generated data have a fixed seed.
"""

from __future__ import annotations

import argparse
import json
import time

from perf.detection import summary
from perf.detection.comparisons import comparisons
from perf.detection.detectors import detectors, otava_version
from perf.detection.error_rates import measure_error_rates
from perf.detection.evaluation import FULL, SHORT, Evaluation, Extent
from perf.detection.false_claims import measure_false_claims
from perf.detection.needed_blocks import measure_needed_blocks
from perf.detection.power import measure_power
from perf.detection.summary import WANTED, Measurements
from perf.harness.machine import describe_machine
from perf.harness.report import judge_requirements, keep

NAME = "detection"
SEED = 6


def main() -> None:
    options = parse()
    came_from = describe_machine()
    began = time.monotonic()
    data = measure(SHORT if options.short else FULL, options.seed)
    answer = judge_requirements(NAME, summary.measured(data), WANTED)
    print(f"\n{summary.text(data)}\n\n{time.monotonic() - began:.0f} s in all\n")
    if options.keep:
        more = {"machine": came_from, "versions": {"apache-otava": otava_version()}}
        more["details"] = {"seed": options.seed, **summary.details(data)}
        print(f"kept in {keep(NAME, {**answer, **more})}")
    print(json.dumps(answer))


def measure(extent: Extent, seed: int) -> Measurements:
    evaluation = Evaluation(extent, seed)
    results = {}
    for detector in detectors():
        print(f"  {detector.title}", flush=True)
        every, sure = evaluation.results(detector)
        results[detector.title] = every
        if detector.title == summary.PITWALL:
            results[summary.ALERTS] = sure
    print("  comparisons", flush=True)
    duels = comparisons(extent.comparisons, seed)
    print("  needed blocks", flush=True)
    needed = measure_needed_blocks(extent.inconclusive, seed)
    print("  false claims by order and run", flush=True)
    claims = measure_false_claims(extent.comparisons, seed)
    print("  error rates", flush=True)
    errors = measure_error_rates(extent.repeated, seed)
    print("  power", flush=True)
    power = measure_power(extent.powers, seed)
    return Measurements(results, duels, needed, claims, errors, power)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.detection")
    parser.add_argument("--short", action="store_true", help="only check that it works")
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of what is made; default {SEED}")
    return parser.parse_args()


if __name__ == "__main__":
    main()
