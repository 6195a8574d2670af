"""The benchmark itself; `python -m perf.fidelity` has started Pitwall before."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import perf.harness.django_setup  # noqa: F401

# isort: split
from perf.fidelity import false_answers, known_latency, overhead, summary
from perf.fidelity.direct import DirectRunError, run_directly
from perf.fidelity.extent import FULL, KNOWN_FULL, KNOWN_SHORT, SHORT, Extent, KnownExtent
from perf.fidelity.loads import LOADS, PACKAGES, Load, find_load_program
from perf.fidelity.pitwall import Pitwall, PitwallError, Reading
from perf.fidelity.summary import Pair
from perf.fidelity.target import TargetError, build_target
from perf.fidelity.tool_output import Figures
from perf.harness.machine import describe_machine
from perf.harness.report import Requirement, judge_requirements, keep
from perf.harness.seed import make_account
from perf.harness.service_cpu import Services

NAME = "fidelity"
PARTS = ("pairs", "false", "known", "overhead")
Pairs = dict[Load, list[Pair]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    """The values of a part of the benchmark with their limits, a table and details."""

    measured: dict[str, float]
    wanted: dict[str, Requirement | None]
    table: str
    details: dict[str, Any]


class Bench:
    """All loads on one server, directly and through Pitwall."""

    def __init__(
        self,
        extent: Extent,
        known_extent: KnownExtent,
        loads: Sequence[Load],
        programs: Mapping[str, Path],
        folder: Path,
    ) -> None:
        self._extent = extent
        self._known_extent = known_extent
        self._programs = programs
        self._folder = folder
        self._target = build_target(folder)
        # The parent started Pitwall.
        self._services = Services(os.getppid())
        self._pitwall = Pitwall(make_account().member, self._target, extent, self._services)
        self._loads = loads

    def run(self, part: str, order: random.Random) -> PartResult:
        measures: Mapping[str, Callable[[], PartResult]] = {
            "pairs": partial(self._compare_pairs, order),
            "false": self._detect_false_answers,
            "known": self._measure_known,
            "overhead": self._measure_overhead,
        }
        return measures[part]()

    def _compare_pairs(self, order: random.Random) -> PartResult:
        pairs = self._run_pairs(order)
        measured = summary.get_measured(pairs, self._measure_idle())
        return PartResult(
            measured=measured,
            wanted=summary.build_requirements(measured),
            table=summary.format_text(pairs),
            details=summary.list_details(pairs),
        )

    def _measure_known(self) -> PartResult:
        errors = known_latency.measure_errors(
            self._pitwall,
            self._target,
            self._list_tools(),
            self._known_extent,
        )
        return PartResult(
            measured=known_latency.get_measured(errors),
            wanted=known_latency.build_requirements(errors),
            table=known_latency.format_table(errors),
            details=known_latency.list_details(errors),
        )

    def _measure_overhead(self) -> PartResult:
        seconds = overhead.measure_overhead(self._pitwall, self._target)
        return PartResult(
            measured=overhead.get_measured(seconds),
            wanted=overhead.build_requirements(),
            table=overhead.format_table(seconds),
            details={},
        )

    def _list_tools(self) -> list[str]:
        """Return the tools for the parts without pairs."""
        return [tool for tool in known_latency.LOADS if tool in self._programs]

    def _run_pairs(self, order: random.Random) -> Pairs:
        """Repeat all loads in turns, so that a change of the machine affects all of them."""
        first = {load: self._first(load) for load in self._loads}
        pairs: Pairs = {load: [] for load in self._loads}
        for number in range(self._extent.pairs):
            for load in self._loads:
                pair = self._pair(load, first[load], order)
                pairs[load].append(pair)
                print_progress(number + 1, load, pair)
        return pairs

    def _detect_false_answers(self) -> PartResult:
        detections = false_answers.measure_detections(self._pitwall, self._list_tools())
        return PartResult(
            measured=false_answers.get_measured(detections),
            wanted=false_answers.build_requirements(detections),
            table=false_answers.format_table(detections),
            details={},
        )

    def _measure_idle(self) -> float:
        """Return the CPU seconds per second of Pitwall's services without work."""
        return sum(self._services.idle(self._extent.idle_s).values())

    def _first(self, load: Load) -> Reading:
        """This run does not count: it transfers commit and tool, and shows Pitwall's CPUs."""
        self._pitwall.add(load)
        reading = self._pitwall.measure(load)
        program = self._programs[load.tool]
        if hashlib.sha256(program.read_bytes()).hexdigest() != reading.program:
            raise PitwallError(f"Pitwall takes another {load.tool} than {program}")
        return reading

    def _pair(self, load: Load, first: Reading, order: random.Random) -> Pair:
        if order.random() < 0.5:
            hand = self._hand(load, first)
            return Pair(hand=hand, pitwall=self._pitwall.measure(load))
        reading = self._pitwall.measure(load)
        return Pair(hand=self._hand(load, first), pitwall=reading)

    def _hand(self, load: Load, first: Reading) -> Figures:
        program = self._programs[load.tool]
        return run_directly(load, program, self._target, self._extent, first.pinned, self._folder)


def main() -> int:
    # Exit in order, so that files are removed. The kernel kills running processes at any exit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = parse()
    extent = (SHORT if options.short else FULL).with_pairs(options.pairs)
    known_extent = KNOWN_SHORT if options.short else KNOWN_FULL
    parts = [part for part in PARTS if options.part in (None, part)]
    loads = [load for load in LOADS if options.only in (None, load.key)]
    programs, missing = find_programs(parts, loads)
    if missing and not options.short:
        print(f"{NAME}: {describe_missing(missing)}", file=sys.stderr)
        return 1
    here = [load for load in loads if load.tool in programs]
    came_from = describe_machine()
    began = time.monotonic()
    seed = random.randrange(2**32)
    with tempfile.TemporaryDirectory(prefix="pwf-") as name:
        try:
            bench = Bench(extent, known_extent, here, programs, Path(name))
            results = [bench.run(part, random.Random(seed)) for part in parts]
        except (TargetError, DirectRunError, PitwallError) as error:
            print(f"{NAME}: {error}", file=sys.stderr)
            return 1
    answer = judge_requirements(
        NAME,
        {key: value for result in results for key, value in result.measured.items()},
        {key: limit for result in results for key, limit in result.wanted.items()},
    )
    tables = "\n\n".join(result.table for result in results)
    print(f"\n{tables}\n\n{time.monotonic() - began:.0f} s in all\n")
    if options.keep:
        details = {key: value for result in results for key, value in result.details.items()}
        more = {"machine": came_from, "details": details, "seed": seed}
        print(f"kept in {keep(NAME, {**answer, **more})}")
    print(json.dumps(answer))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.fidelity")
    parser.add_argument("--short", action="store_true", help="only check that it works")
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    parser.add_argument("--part", choices=PARTS, help="this part alone")
    parser.add_argument("--pairs", type=int, help="number of pairs per load")
    parser.add_argument("--only", choices=[load.key for load in LOADS], help="pairs of this load")
    options = parser.parse_args()
    if options.keep and (options.part or options.only or options.pairs):
        parser.error("what is kept is a whole run: leave --part, --only and --pairs out")
    if options.only:
        options.part = "pairs"
    return options


def find_programs(parts: Sequence[str], loads: Sequence[Load]) -> tuple[dict[str, Path], list[str]]:
    """Return the tools that were found, and the names of the missing ones."""
    names = {load.tool for load in loads} if "pairs" in parts else set()
    if parts != ["pairs"]:
        names |= known_latency.LOADS.keys()
    paths = {tool: find_load_program(tool, os.environ) for tool in sorted(names)}
    here = {tool: path for tool, path in paths.items() if path is not None}
    return here, [tool for tool in paths if tool not in here]


def describe_missing(missing: Sequence[str]) -> str:
    packages = [PACKAGES[tool] for tool in missing if tool in PACKAGES]
    ways = ["make tools"] if len(packages) < len(missing) else []
    ways += [f"apt-get install {' '.join(packages)}"] if packages else []
    return f"there is no {', no '.join(missing)} here: {', '.join(ways)}"


def print_progress(number: int, load: Load, pair: Pair) -> None:
    ratios = [getattr(pair.comparable, each) / getattr(pair.hand, each) for each in summary.METRICS]
    shown = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    print(f"  {number}: {load.title}: {shown} ({pair.pitwall.validity})", flush=True)


if __name__ == "__main__":
    sys.exit(main())
