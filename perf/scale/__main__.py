"""Benchmark of pages and ingest with 10 million trials, compared with a bare Django view.

`make bench-scale` (about 20 minutes, and temporarily 8 GB of disk). `ARGS=--short` only checks that
it works, `ARGS=--keep` stores the result in perf/results.
"""

import sys

from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    sys.exit(run_with_servers("scale", "perf.scale.benchmark"))
