"""Measure equal servers with and without a busy neighbour: `make bench-disturbance`.

`ARGS=--short` only checks that it works, `ARGS=--keep` stores the result in perf/results.
"""

import sys

from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    sys.exit(
        run_with_servers("disturbance", "perf.disturbance.benchmark", tools=True, application=True)
    )
