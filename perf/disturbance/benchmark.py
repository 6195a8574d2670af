"""The benchmark itself; `python -m perf.disturbance` has started Pitwall before."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import perf.harness.django_setup  # noqa: F401

# isort: split
from perf.disturbance import summary
from perf.disturbance.extent import FULL, SHORT, DisturbanceExtent
from perf.disturbance.neighbour import run_neighbour
from perf.disturbance.summary import DisturbedPair
from perf.fidelity.loads import LOADS, Load
from perf.fidelity.pitwall import Pitwall, PitwallError, Reading
from perf.fidelity.target import TargetError, build_target
from perf.harness.machine import describe_machine
from perf.harness.report import judge_requirements, keep
from perf.harness.seed import make_account
from perf.harness.service_cpu import Services

NAME = "disturbance"
#: A closed loop is limited by the server's CPU, an open one has CPU time to spare.
KEYS = ("oha_closed", "oha_rate")


class DisturbanceBench:
    """Trials of one server, alone and next to a neighbour on the server's CPU."""

    def __init__(self, extent: DisturbanceExtent, folder: Path) -> None:
        self._extent = extent
        target = build_target(folder)
        # The parent started Pitwall.
        services = Services(os.getppid())
        self._pitwall = Pitwall(make_account().member, target, extent.load, services)
        self._loads = [load for load in LOADS if load.key in KEYS]

    def run(self, order: random.Random) -> dict[tuple[Load, float], list[DisturbedPair]]:
        """Repeat all loads and shares in random order within each block."""
        cpus = {load: self._measure_first(load).pinned.server for load in self._loads}
        pairs: dict[tuple[Load, float], list[DisturbedPair]] = defaultdict(list)
        for number in range(1, self._extent.blocks + 1):
            for load in self._loads:
                shares = [None, *self._extent.shares]
                order.shuffle(shares)
                readings = {each: self._measure(load, each or 0.0, cpus[load]) for each in shares}
                for share in self._extent.shares:
                    pair = DisturbedPair(alone=readings[None], disturbed=readings[share])
                    pairs[load, share].append(pair)
            print(f"  block {number} of {self._extent.blocks}", flush=True)
        return dict(sorted(pairs.items(), key=lambda each: (each[0][0].key, each[0][1])))

    def _measure_first(self, load: Load) -> Reading:
        """This run does not count: it transfers commit and tool, and shows Pitwall's CPUs."""
        self._pitwall.add(load)
        return self._pitwall.measure(load)

    def _measure(self, load: Load, share: float, cpus: tuple[int, ...]) -> Reading:
        with run_neighbour(share, cpus):
            return self._pitwall.measure(load)


def main() -> int:
    # Exit in order, so that files are removed. The kernel kills running processes at any exit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = parse_options()
    came_from = describe_machine()
    began = time.monotonic()
    seed = random.randrange(2**32)
    with tempfile.TemporaryDirectory(prefix="pwd-") as name:
        try:
            bench = DisturbanceBench(SHORT if options.short else FULL, Path(name))
            pairs = bench.run(random.Random(seed))
        except (TargetError, PitwallError) as error:
            print(f"{NAME}: {error}", file=sys.stderr)
            return 1
    values = summary.measure_effects(pairs)
    answer = judge_requirements(NAME, values, summary.build_requirements(values))
    print(f"\n{summary.build_text(pairs)}\n\n{time.monotonic() - began:.0f} s in all\n")
    if options.keep:
        more = {"machine": came_from, "details": summary.build_details(pairs), "seed": seed}
        print(f"kept in {keep(NAME, {**answer, **more})}")
    print(json.dumps(answer))
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.disturbance")
    parser.add_argument("--short", action="store_true", help="only check that it works")
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
