"""An hour of small runs on four hosts while everything around them breaks.

`make soak`, or `ARGS="--minutes 5"`, `ARGS=--short` (half a minute, to see only that it works),
`ARGS=--keep` to keep the result, `ARGS="--seed 7"` for other faults. Starts a PostgreSQL of its own
and removes it; the rest is in `perf/soaking`.
"""

from __future__ import annotations

import sys

from devstack.errors import DevstackError
from devstack.instance import hold_free_instance
from devstack.supervisor import say
from perf.scale import with_servers


def main() -> int:
    try:
        return with_servers(hold_free_instance("soak"), "perf.soaking", tools=True)
    except DevstackError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
