"""Separate PostgreSQL, Redis and Pitwall of a benchmark: started empty, removed at the end."""

from __future__ import annotations

import shutil
import sys

from devstack.__main__ import run
from devstack.errors import DevstackError
from devstack.instance import Instance, hold_free_instance
from devstack.interrupts import StopRequested
from devstack.stack import build_stack
from devstack.supervisor import print_message


def run_with_servers(
    name: str, module: str, *, tools: bool = False, application: bool = False
) -> int:
    """Run `python -m module` with our arguments next to empty servers; return its exit status.

    The servers write to disk as durably as in production. `tools` provides the load tools;
    `application` starts Pitwall too. `name` is that of the instance below .pitwall.
    """
    try:
        instance = hold_free_instance(name)
        _forget(instance)
        try:
            return _run(instance, module, tools=tools, application=application)
        finally:
            _forget(instance)
    except DevstackError as error:
        print_message(str(error))
        return 1


def _run(instance: Instance, module: str, *, tools: bool, application: bool) -> int:
    with build_stack(instance, careless=False) as stack:
        try:
            if tools:
                stack.provide_tools()
            stack.start_servers()
            if application:
                stack.start_application()
            return run(stack, sys.executable, "-m", module, *sys.argv[1:])
        except StopRequested as request:
            return 128 + request.signum


def _forget(instance: Instance) -> None:
    """Delete the data, which are large and of no use to the next run."""
    for name in ("postgres", "redis", "data"):
        shutil.rmtree(instance.root / name, ignore_errors=True)
