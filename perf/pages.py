"""What Lighthouse says of the main screens, and how soon the page of a live run shows a result:
`make bench-pages` (about 20 minutes).

`ARGS=--short` looks at one screen once, only to see that it works; `ARGS='--only live'` measures
the live page alone; `ARGS=--keep` keeps the result.
Starts a PostgreSQL of its own and removes it; the measuring is in `perf/paging`.
"""

import sys

from devstack.errors import DevstackError
from devstack.instance import hold_free_instance
from devstack.supervisor import say
from perf.scale import with_servers

if __name__ == "__main__":
    try:
        sys.exit(with_servers(hold_free_instance("pages"), "perf.paging"))
    except DevstackError as error:
        say(str(error))
        sys.exit(1)
