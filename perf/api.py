"""How long the API takes in the server, beside a bare Django view.

`make bench-api` (about 2 minutes), or `ARGS=--short` to see only that it works, `ARGS=--keep` to
keep the result. Starts a PostgreSQL and a Redis of its own and removes them; the measuring is in
`perf/asking`.
"""

from __future__ import annotations

import sys

from devstack.errors import DevstackError
from devstack.instance import hold_free_instance
from devstack.supervisor import say
from perf.scale import with_servers


def main() -> int:
    try:
        return with_servers(hold_free_instance("api"), "perf.asking")
    except DevstackError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
