"""Benchmark of pages and ingest with 10 million trials, next to a bare Django view.

`make bench-scale` (about 20 minutes, and 8 GB of disk meanwhile). `ARGS=--short` only shows that it
works, `ARGS=--keep` stores the result in perf/results.
"""

import sys

from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    sys.exit(run_with_servers("scale", "perf.scale.benchmark"))
