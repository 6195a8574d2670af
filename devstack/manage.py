"""Run a command of manage.py on the database of an instance, whether it runs or not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from devstack.instance import find_running_instance, hold_instance
from devstack.interrupts import StopRequested
from devstack.places import CHECKOUT
from devstack.processes import Command
from devstack.stack import Stack, build_stack
from devstack.supervisor import Supervisor


def manage(name: str, argv: Sequence[str]) -> int:
    """Return the exit status of the command, which has our terminal. Raise InstanceError."""
    command = (sys.executable, str(CHECKOUT / "manage.py"), *argv)
    running = find_running_instance(name)
    if running is not None:
        instance, url = running
        env = Stack(instance, Supervisor(), careless=False).build_running_environment(url)
        return subprocess.run(command, env=env, cwd=CHECKOUT).returncode
    with build_stack(hold_instance(name), careless=False) as stack:
        try:
            stack.start_servers()
            stack.env["PITWALL_BASE_URL"] = f"http://127.0.0.1:{stack.instance.port()}"
            stack.migrate()
            status = stack.supervisor.run(
                Command(name="command", argv=command, env=stack.env, cwd=CHECKOUT)
            )
        except StopRequested as request:
            return 128 + request.signum
    return 128 - status if status < 0 else status
