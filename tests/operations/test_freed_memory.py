"""Threads that read something large, one after the other or at once, leave nothing of it behind."""

import platform
import subprocess
import sys

import pytest

MIB = 2**20

#: Each of eight threads reads 24 MiB three times and keeps a little of its own, as tasks do.
PROGRAM = f"""
import sys, threading
from pathlib import Path
from orchestrator.operations.freed_memory import give_freed_memory_back

if sys.argv[1] == "given back":
    give_freed_memory_back()

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

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


def left_behind(how: str) -> int:
    """Bytes."""
    argv = [sys.executable, "-c", PROGRAM, how]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps it")
def test_it_goes_back_to_the_system():
    assert left_behind("given back") < 8 * MIB
    assert left_behind("as it is") > 24 * MIB
