"""Lighthouse on the main screens, and the delay until the page of a live run shows a result.

`make bench-pages` (about 40 minutes). `ARGS=--short` measures one screen once, only to check that
it works; `ARGS='--only live'` measures the live page alone; `ARGS=--keep` stores the result.
"""

import sys

from perf.harness.servers import run_with_servers

if __name__ == "__main__":
    sys.exit(run_with_servers("pages", "perf.pages.benchmark"))
