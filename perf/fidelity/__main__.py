"""Compares Pitwall's numbers with those of the load tools started directly: `make bench-fidelity`.

`ARGS=--short` only shows that it works, `ARGS=--keep` stores the result in perf/results.
"""

import sys

from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    sys.exit(run_with_servers("fidelity", "perf.fidelity.benchmark", tools=True, application=True))
