"""A process that uses a share of one CPU: a program of its own, and its start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

from devstack.processes import die_with_parent

#: The neighbour ends by itself after this time, whatever becomes of the benchmark.
MOST_S = 120
#: It works once in this time, as programs do that wake up often.
PERIOD_S = 0.01

_PROGRAM = """
import sys, time
share, period, end = float(sys.argv[1]), float(sys.argv[2]), time.monotonic() + float(sys.argv[3])
begin = time.monotonic()
while begin < end:
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
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, preexec_fn=partial(_prepare, os.getpid(), frozenset(cpus))
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _prepare(parent: int, cpus: frozenset[int]) -> None:
    die_with_parent(parent, signal.SIGKILL)
    os.sched_setaffinity(0, cpus)
