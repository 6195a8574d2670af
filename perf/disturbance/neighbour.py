"""A separate process that uses a share of one CPU."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from perf.harness.processes import run_on_cpus

#: The neighbour ends by itself after this time, whatever becomes of the benchmark.
MOST_S = 120
#: It works once in this time, as programs do that wake up often.
PERIOD_S = 0.01

_PROGRAM = """
import sys, time
share, period, end = float(sys.argv[1]), float(sys.argv[2]), time.monotonic() + float(sys.argv[3])
begin = time.monotonic()
while time.monotonic() < end:
    stop = time.thread_time() + share * period
    while time.thread_time() < stop:
        pass
    begin += period
    time.sleep(max(0.0, begin - time.monotonic()))
"""


@contextmanager
def run_neighbour(share: float, cpus: Collection[int]) -> Iterator[None]:
    """Use this share of one of the CPUs while the context lasts; nothing for a share of 0."""
    if not share:
        yield
        return
    argv = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(share), str(PERIOD_S), str(MOST_S)]
    with run_on_cpus(argv, cpus):
        yield
