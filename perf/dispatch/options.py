"""The options of the benchmark; this module imports no Django."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

#: Each part with the name of its kept result.
PARTS = {"jobs": "dispatch", "fleet": "dispatch-fleet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`parts`: some of PARTS. `hosts`: the number of simulated hosts; None: the usual one."""

    short: bool
    keep: bool
    parts: Sequence[str]
    hosts: int | None


def parse() -> Options:
    parser = argparse.ArgumentParser(prog="python -m perf.dispatch")
    parser.add_argument("--short", action="store_true", help="only check that it works")
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    parser.add_argument("--only", choices=PARTS, help="measure only this part")
    parser.add_argument("--hosts", type=int, help="number of simulated hosts")
    given = parser.parse_args()
    if given.keep and given.hosts:
        parser.error("what is kept has the usual number of hosts: leave --hosts out")
    parts = [given.only] if given.only else list(PARTS)
    return Options(short=given.short, keep=given.keep, parts=parts, hosts=given.hosts)
