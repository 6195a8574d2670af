"""Accuracy of change detection in histories and between two commits, compared with other methods.

The part `changes` measures change points, and comparisons of one metric: their errors, their power,
the estimated number of blocks, repeated runs, and false claims by the order of trials or by noise
between runs or builds. It also measures bisections with noise between builds, estimates near
saturation, and capacity searches. The part `runs` measures whole runs of many cases, from their
blocks to the headline. The part `watching` measures golden runs, confirmation runs, bisections of
several culprits, and points of unequal precision. The part `contests` measures rank groups, and
paired intervals of reports.

`make bench-detection`, or `ARGS=--short` to check only that it works, `ARGS=--keep` to keep the
result, `ARGS="--only runs"` for one part. Needs no database. All generated data have a fixed seed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from perf.detection.evaluation import FULL, SHORT, Extent
from perf.detection.parts import PARTS
from perf.harness.machine import describe_machine
from perf.harness.report import judge_requirements, keep, load_kept

NAME = "detection"
SEED = 6


def main() -> None:
    options = parse()
    extent = SHORT if options.short else FULL
    if options.runs:
        extent = replace(extent, runs=options.runs)
    names = [options.only] if options.only else list(PARTS)
    parts = {name: measure(name, extent, options.seed) for name in names}
    if options.keep:
        kept = {**load_kept_parts(), **parts}
        print(f"kept in {keep(NAME, {**judge(kept), 'parts': kept})}")
    print(json.dumps(judge(parts)))


def measure(name: str, extent: Extent, seed: int) -> dict[str, Any]:
    """Measure a part and print its tables; return what is kept of it."""
    print(name, flush=True)
    machine = describe_machine()
    began, used = time.monotonic(), time.process_time()
    result = PARTS[name].measure(extent, seed)
    took, used = time.monotonic() - began, time.process_time() - used
    print(f"\n{result.text}\n\n{name}: {took:.0f} s, {used:.0f} s of CPU time\n", flush=True)
    return {
        "machine": machine,
        "seed": seed,
        "cpu_s": round(used),
        "measured": dict(result.measured),
        "details": dict(result.details),
    }


def judge(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object of the last line, of these parts."""
    measured = {key: value for part in parts.values() for key, value in part["measured"].items()}
    wanted = {key: want for name in parts for key, want in PARTS[name].wanted.items()}
    return judge_requirements(NAME, measured, wanted)


def load_kept_parts() -> dict[str, Any]:
    """Return the parts of the kept result whose values are those that are wanted today."""
    return {
        name: part
        for name, part in load_kept(NAME).get("parts", {}).items()
        if name in PARTS and part["measured"].keys() == PARTS[name].wanted.keys()
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.detection")
    parser.add_argument("--short", action="store_true", help="only check that it works")
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    parser.add_argument("--only", choices=PARTS, help="measure only this part")
    parser.add_argument("--runs", type=int, help=f"simulated runs of a kind; {FULL.runs} in full")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of what is made; default {SEED}")
    return parser.parse_args()


if __name__ == "__main__":
    main()
