"""How fast Pitwall dispatches over SSH, beside what a user would pick instead.

`make bench-dispatch`, or `ARGS=--short` to see only that it works, `ARGS=--keep` to keep the
result. Starts a Pitwall of its own, empty, and stops it; the measuring is in `perf/dispatching`.
"""

from __future__ import annotations

import shutil
import sys

from devstack.__main__ import run
from devstack.errors import DevstackError
from devstack.instance import hold_free_instance
from devstack.interrupts import StopRequested
from devstack.stack import stack_of
from devstack.supervisor import say
from perf.harness.venv import rivals_venv

#: What an instance keeps from one time to the next, and this one must not.
LEFT = ("postgres", "redis", "data")


def main() -> int:
    rivals_venv()
    instance = hold_free_instance("bench")
    for name in LEFT:
        shutil.rmtree(instance.root / name, ignore_errors=True)
    try:
        with stack_of(instance, careless=False) as stack:
            try:
                stack.provide_tools()
                stack.start_servers()
                stack.start_application()
                return run(stack, sys.executable, "-m", "perf.dispatching", *sys.argv[1:])
            except StopRequested as request:
                return 128 + request.signum
    except DevstackError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
