"""A process that uses a whole CPU, as another program on a host does."""

import os
import signal
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from devstack.processes import die_with_parent

#: The process ends by itself after this much CPU time, whatever becomes of the test.
MOST_CPU_S = 60


@contextmanager
def run_busy_process(folder: Path, name: str, cpus: Collection[int] = ()) -> Iterator[None]:
    """Use up one of these CPUs (one of all by default) under a name of its own."""
    program = folder / name
    program.symlink_to("/bin/sh")
    loop = f"ulimit -t {MOST_CPU_S}; while :; do :; done"
    process = subprocess.Popen(
        [program, "-c", loop], preexec_fn=partial(_prepare, os.getpid(), frozenset(cpus))
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _prepare(parent: int, cpus: frozenset[int]) -> None:
    die_with_parent(parent, signal.SIGKILL)
    os.sched_setaffinity(0, cpus or os.sched_getaffinity(0))
