"""A process that uses a whole CPU, as another program on a host does."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from perf.harness.processes import run_on_cpus

#: The process ends by itself after this much CPU time, whatever becomes of the test.
MOST_CPU_S = 60


@contextmanager
def run_busy_process(folder: Path, name: str, cpus: Collection[int] = ()) -> Iterator[None]:
    """Use up one of these CPUs (one of all by default) under this name of a program."""
    program = folder / name
    program.symlink_to("/bin/sh")
    loop = f"ulimit -t {MOST_CPU_S}; while :; do :; done"
    with run_on_cpus([program, "-c", loop], cpus):
        yield
