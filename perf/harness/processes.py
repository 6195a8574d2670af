"""CPU time (clock ticks of 10 ms) and memory of living processes, read from /proc; programs that
run next to a measurement."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from devstack.processes import die_with_parent, find_descendants

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a process: `pss` counts shared pages proportionally, `rss` counts them fully.

    `anonymous` is the part of `pss` that is anonymous memory.
    """

    pss: int = 0
    rss: int = 0
    anonymous: int = 0


@contextlib.contextmanager
def run_on_cpus(argv: Sequence[str | Path], cpus: Collection[int] = ()) -> Iterator[None]:
    """Run a program on these CPUs (default: on all) while the context lasts, then kill it."""
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
    os.sched_setaffinity(0, cpus or os.sched_getaffinity(0))


def read_memory(pid: int) -> Memory:
    """Return the memory of a process; zeros if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return Memory()
    size = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    if not size:
        return Memory()
    return Memory(pss=size["Pss"], rss=size["Rss"], anonymous=size["Pss_Anon"])


def sum_tree_cpu_s(pid: int) -> float:
    """Return CPU seconds of a process and of all below it, including reaped ones."""
    return sum(_read_cpu_s(each) for each in [pid, *find_descendants(pid)])


def list_children(pid: int) -> dict[int, str]:
    """Return the living children of a process, with their command lines."""
    children = {}
    for child in find_descendants(pid):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if _read_fields(child)[1] == str(pid):
                children[child] = b" ".join(words).decode(errors="replace").strip()
    return children


def _read_cpu_s(pid: int) -> float:
    with contextlib.suppress(OSError):
        # utime, stime, and the same of reaped children.
        return sum(int(ticks) for ticks in _read_fields(pid)[11:15]) / TICKS
    return 0.0


def _read_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name: state, parent, …"""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
