"""Benchmark of dispatch over SSH: `make bench-dispatch`.

The part `jobs` compares jobs with alternatives, the part `fleet` has 1,000 simulated hosts.
`ARGS=--short` only checks that it works, `ARGS=--keep` stores the result in perf/results,
`ARGS="--only fleet"` measures one part.
"""

import sys

from perf.dispatch.options import parse
from perf.harness.environments import build_alternatives_venv
from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    if "jobs" in parse().parts:
        build_alternatives_venv()
    sys.exit(run_with_servers("dispatch", "perf.dispatch.benchmark", tools=True, application=True))
