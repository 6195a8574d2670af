"""Benchmark of dispatch over SSH, compared with alternatives: `make bench-dispatch`.

`ARGS=--short` only checks that it works, `ARGS=--keep` stores the result in perf/results.
"""

import sys

from perf.harness.environments import build_alternatives_venv
from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    build_alternatives_venv()
    sys.exit(run_with_servers("dispatch", "perf.dispatch.benchmark", tools=True, application=True))
