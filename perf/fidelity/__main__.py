"""Compare Pitwall's values with those of load tools started directly: `make bench-fidelity`.

`ARGS=--short` only checks that it works, `ARGS=--keep` stores the result in perf/results.
"""

import sys

from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    sys.exit(run_with_servers("fidelity", "perf.fidelity.benchmark", tools=True, application=True))
