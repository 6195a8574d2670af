"""How fast pages and ingest are with 10 million trials, beside a bare Django view.

`make bench-scale` (about 20 minutes, 8 GB of disk that are free again afterwards), or
`ARGS=--short` to see only that it works, `ARGS=--keep` to keep the result. Starts a PostgreSQL of
its own and removes it; the measuring is in `perf/scaling`.
"""

from __future__ import annotations

import shutil
import sys

from devstack.__main__ import run
from devstack.errors import DevstackError
from devstack.instance import Instance, hold_free_instance
from devstack.interrupts import StopRequested
from devstack.stack import stack_of
from devstack.supervisor import say


def main() -> int:
    try:
        return with_servers(hold_free_instance("scale"), "perf.scaling")
    except DevstackError as error:
        say(str(error))
        return 1


def with_servers(instance: Instance, body: str, *, tools: bool = False) -> int:
    """Run this module while PostgreSQL and Redis run, as durable as anybody's; the exit status.

    `tools`: it puts load."""
    forget(instance)
    try:
        with stack_of(instance, careless=False) as stack:
            try:
                if tools:
                    stack.provide_tools()
                stack.start_servers()
                return run(stack, sys.executable, "-m", body, *sys.argv[1:])
            except StopRequested as request:
                return 128 + request.signum
    finally:
        forget(instance)


def forget(instance: Instance) -> None:
    """What it keeps is large, and of no use to the next time."""
    for name in ("postgres", "redis", "data"):
        shutil.rmtree(instance.root / name, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
