"""Threads that read something large, one after the other or at once, leave nothing of it behind."""

import gc
import linecache
import platform
import subprocess
import sys
import threading
import weakref

import pytest

from orchestrator.operations import freed_memory, heartbeat_thread

MIB = 2**20

#: Pages in memory; every program here begins with it.
RESIDENT = """
from pathlib import Path

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])
"""

#: Each of eight threads reads 24 MiB three times and keeps a little of its own, as tasks do.
PROGRAM = f"""
import sys, threading
from orchestrator.operations.freed_memory import configure_malloc

if sys.argv[1] == "given back":
    configure_malloc()

kept, together = [], threading.Barrier(8)

def read():
    for _ in range(3):
        together.wait()
        large = bytearray(24 * {MIB})
        large[::4096] = bytes(len(large) // 4096)
        kept.append(bytearray(2000))
        del large

before = resident()
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print((resident() - before) * 4096)
"""


#: Of many small blocks all are freed but one here and there.
SCATTERED = """
from orchestrator.operations.freed_memory import return_free_pages, configure_malloc

configure_malloc()
before = resident()
blocks = [bytearray(2000) for _ in range(20_000)]
kept = blocks[::100]
del blocks
left = resident()
return_free_pages()
print((left - before) * 4096, (resident() - before) * 4096)
"""

glibc_only = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps it")


def measure_resident_bytes(program: str, *words: str) -> list[int]:
    """Bytes."""
    argv = [sys.executable, "-c", RESIDENT + program, *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    return [int(word) for word in done.stdout.split()]


@glibc_only
def test_freed_memory_returns_to_the_system() -> None:
    (left,) = measure_resident_bytes(PROGRAM, "given back")
    assert left < 8 * MIB
    (left,) = measure_resident_bytes(PROGRAM, "as it is")
    assert left > 24 * MIB


@glibc_only
def test_fragmented_free_memory_returns_to_the_system() -> None:
    left, afterwards = measure_resident_bytes(SCATTERED)
    assert left > 30 * MIB
    assert afterwards < 10 * MIB


class Node:
    def __init__(self) -> None:
        self.me = self


def test_each_process_tidies_its_memory_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    assert linecache.getline(__file__, 1)
    garbage = weakref.ref(Node())
    monkeypatch.setattr(heartbeat_thread, "EVERY_S", 0.01)
    monkeypatch.setattr(freed_memory, "return_free_pages", done.set)
    gc.disable()
    try:
        beating = heartbeat_thread.HeartbeatThread(None)
        beating.start()
        assert done.wait(30)
        beating.stop()
    finally:
        gc.enable()
    assert __file__ not in linecache.cache
    assert garbage() is None
