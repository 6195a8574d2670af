"""Fuzzing of the API with schemathesis: `make fuzz-api`.

It starts a separate PostgreSQL and Redis, and removes them; the fuzzing is in `body.py`.
"""

import sys

from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    sys.exit(run_with_servers("fuzz", "tests.fuzz.body"))
