"""Run our own benchmarks as processes, as `make bench-…` starts them."""

import json
import os
import subprocess
import sys
from typing import Any

from devstack.places import CHECKOUT

#: A benchmark starts its own servers, and must not find those of the tests.
OF_THE_TESTS = ("DATABASE_URL", "REDIS_URL")


def run_benchmark(name: str, *args: str, timeout_s: float) -> dict[str, Any]:
    """Return the last line of the short form of `perf.NAME`, once it has succeeded."""
    done = subprocess.run(
        [sys.executable, "-m", f"perf.{name}", "--short", *args],
        cwd=CHECKOUT,
        env={key: text for key, text in os.environ.items() if key not in OF_THE_TESTS},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["name"] == name
    return answer
