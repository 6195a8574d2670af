"""A Pitwall of a benchmark's own: started empty, stopped with all that it started."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from devstack.__main__ import run
from devstack.errors import DevstackError
from devstack.instance import hold_free_instance
from devstack.interrupts import StopRequested
from devstack.stack import stack_of
from devstack.supervisor import say

#: What an instance keeps from one time to the next, and this one must not.
LEFT = ("postgres", "redis", "data")


def in_own_pitwall(module: str, arguments: Sequence[str]) -> int:
    """Run `python -m module` while a Pitwall runs, with its environment; the exit status."""
    instance = hold_free_instance("bench")
    for name in LEFT:
        shutil.rmtree(instance.root / name, ignore_errors=True)
    try:
        with stack_of(instance, careless=False) as stack:
            try:
                stack.provide_tools()
                stack.start_servers()
                stack.start_application()
                return run(stack, sys.executable, "-m", module, *arguments)
            except StopRequested as request:
                return 128 + request.signum
    except DevstackError as error:
        say(str(error))
        return 1
