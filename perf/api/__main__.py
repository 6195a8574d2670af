"""Benchmark of the API, compared with a bare Django view: `make bench-api` (about 2 minutes).

`ARGS=--short` only checks that it works, `ARGS=--keep` stores the result in perf/results.
"""

import sys

from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    sys.exit(run_with_servers("api", "perf.api.benchmark"))
