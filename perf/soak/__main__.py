"""An hour of small runs on four hosts under random faults: `make soak`.

`ARGS="--minutes 5"`, `ARGS=--short` (half a minute, only to check that it works), `ARGS="--seed 7"`
for other faults, `ARGS=--keep` to store the result.
"""

import sys

from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    sys.exit(run_with_servers("soak", "perf.soak.benchmark", tools=True))
