"""Fuzzing of the API with schemathesis: `make fuzz-api`.

Starts a PostgreSQL and a Redis of its own, and removes them; the fuzzing is in `body.py`.
"""

import sys

from devstack.errors import DevstackError
from devstack.instance import hold_free_instance
from devstack.supervisor import say
from perf.scale import with_servers


def main() -> int:
    try:
        return with_servers(hold_free_instance("fuzz"), "tests.fuzz.body")
    except DevstackError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
