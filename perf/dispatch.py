"""How fast Pitwall dispatches over SSH, beside what a user would pick instead.

`make bench-dispatch`, or `ARGS=--short` to see only that it works, `ARGS=--keep` to keep the
result. Starts a Pitwall of its own, empty, and stops it; the measuring is in `perf/dispatching`.
"""

from __future__ import annotations

import sys

from perf.harness.own import in_own_pitwall
from perf.harness.venv import rivals_venv

if __name__ == "__main__":
    rivals_venv()
    sys.exit(in_own_pitwall("perf.dispatching", sys.argv[1:]))
