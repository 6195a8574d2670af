"""Whether Pitwall's readings are those that the load tools give to who starts them by hand.

`make bench-fidelity`, or `ARGS=--short` to see only that it works, `ARGS=--keep` to keep the
result. Starts a Pitwall of its own, empty, and stops it; the measuring is in `perf/faithful`.
"""

from __future__ import annotations

import sys

from perf.harness.own import in_own_pitwall

if __name__ == "__main__":
    sys.exit(in_own_pitwall("perf.faithful", sys.argv[1:]))
