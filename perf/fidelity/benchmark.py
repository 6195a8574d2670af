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
from collections.abc import Mapping, Sequence
from pathlib import Path

import perf.harness.django_setup  # noqa: F401

# isort: split
from perf.fidelity import false_answers, summary
from perf.fidelity.direct import DirectRunError, run_directly
from perf.fidelity.extent import FULL, SHORT, Extent
from perf.fidelity.false_answers import Detection, measure_detections
from perf.fidelity.loads import LOADS, PACKAGES, Load, find_load_program
from perf.fidelity.pitwall import Pitwall, PitwallError, Reading
from perf.fidelity.summary import Pair
from perf.fidelity.target import TargetError, built_target
from perf.fidelity.tool_output import Figures
from perf.harness.machine import describe_machine
from perf.harness.report import judge_requirements, keep
from perf.harness.seed import make_account
from perf.harness.service_cpu import Services

NAME = "fidelity"
Found = dict[Load, list[Pair]]


class Bench:
    """All loads on one server, directly and through Pitwall."""

    def __init__(
        self, extent: Extent, loads: Sequence[Load], programs: Mapping[str, Path], folder: Path
    ) -> None:
        self._extent = extent
        self._programs = programs
        self._folder = folder
        self._target = built_target(folder)
        # The parent started Pitwall.
        self._services = Services(os.getppid())
        self._pitwall = Pitwall(make_account().member, self._target, extent, self._services)
        self._loads = loads

    def run(self, order: random.Random) -> Found:
        """Repeat all loads in turns, so that a change of the machine affects all of them."""
        first = {load: self._first(load) for load in self._loads}
        pairs: Found = {load: [] for load in self._loads}
        for number in range(self._extent.pairs):
            for load in self._loads:
                pair = self._pair(load, first[load], order)
                pairs[load].append(pair)
                print_progress(number + 1, load, pair)
        return pairs

    def measure_false_answers(self) -> dict[str, Detection]:
        """Return which false answers are detected with each tool."""
        return measure_detections(self._pitwall, dict.fromkeys(load.tool for load in self._loads))

    def measure_idle(self) -> float:
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
    loads = [load for load in LOADS if options.only in (None, load.key)]
    programs, missing = tools(loads)
    if missing and not options.short:
        print(f"{NAME}: {lacking(missing)}", file=sys.stderr)
        return 1
    here = [load for load in loads if load.tool in programs]
    came_from = describe_machine()
    began = time.monotonic()
    seed = random.randrange(2**32)
    with tempfile.TemporaryDirectory(prefix="pwf-") as name:
        try:
            bench = Bench(extent, here, programs, Path(name))
            pairs = bench.run(random.Random(seed))
            detections = bench.measure_false_answers()
            idle = bench.measure_idle()
        except (TargetError, DirectRunError, PitwallError) as error:
            print(f"{NAME}: {error}", file=sys.stderr)
            return 1
    values = summary.measured(pairs, idle)
    wanted = summary.build_requirements(values) | false_answers.build_requirements(detections)
    answer = judge_requirements(NAME, values | false_answers.measured(detections), wanted)
    print(f"\n{summary.text(pairs)}\n\n{false_answers.text(detections)}")
    print(f"\n{time.monotonic() - began:.0f} s in all\n")
    if options.keep:
        more = {"machine": came_from, "details": summary.details(pairs), "seed": seed}
        print(f"kept in {keep(NAME, {**answer, **more})}")
    print(json.dumps(answer))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.fidelity")
    parser.add_argument("--short", action="store_true", help="only check that it works")
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    parser.add_argument("--pairs", type=int, help="number of pairs per load")
    parser.add_argument("--only", choices=[load.key for load in LOADS], help="this load alone")
    options = parser.parse_args()
    if options.keep and (options.only or options.pairs):
        parser.error("what is kept is a whole run: leave --only and --pairs out")
    return options


def tools(loads: Sequence[Load]) -> tuple[dict[str, Path], list[str]]:
    """Return the tools that were found, and the names of the missing ones."""
    paths = {load.tool: find_load_program(load.tool, os.environ) for load in loads}
    here = {tool: path for tool, path in paths.items() if path is not None}
    return here, [tool for tool in paths if tool not in here]


def lacking(missing: Sequence[str]) -> str:
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
