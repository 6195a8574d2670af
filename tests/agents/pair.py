"""Two hosts on this machine: `a` leads and puts the load on, `b` has the server.

Each has a work directory and a loopback address of its own.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.support import (
    SERVER,
    AgentHost,
    Step,
    a_build,
    a_plan,
    a_server,
    a_trial,
)

SECRET = "5e" * 32
ADDRESSES = {"a": "127.0.0.1", "b": "127.0.0.2"}
needs_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux answers on all of 127.0.0.0/8"
)
#: As SERVER, on the given address.
BOUND = SERVER.replace('"127.0.0.1", int(sys.argv[1])', "sys.argv[1], int(sys.argv[2])")
SERVE = a_server(on="b", argv=["{python}", "server.py", "{bind}", "{port}"])
#: Asks the server once before it writes what the agent expects.
ASK = """
import urllib.request
if "--version" not in sys.argv:
    assert urllib.request.urlopen(sys.argv[3]).read() == b"Hello, World!"
"""


class Pair:
    """Both hosts, with the sources of one commit on `b`. `secrets`: what both get at the start."""

    def __init__(self, folder: Path) -> None:
        self.secrets: dict[str, str] = {}
        self.a = AgentHost(folder / "a")
        self.b = AgentHost(folder / "b")
        self.b.send_source({"server.py": BOUND.format(extra="")})

    def plan(self, me: str, *trials: dict[str, Any], **changes: Any) -> dict[str, Any]:
        hosts = {label: {"address": at, "port": None} for label, at in ADDRESSES.items()}
        plain = {
            "self": me,
            "lead": "a",
            "secret": SECRET,
            "hosts": hosts,
            "builds": [a_build(on=["b"])],
        }
        return a_plan(*trials, **{**plain, **changes})

    def follow(self, *trials: dict[str, Any], **changes: Any) -> tuple[Step, int]:
        """The follower's step, and the port on which it waits for its lead."""
        step = self.b.start(self.plan("b", *trials, **changes), self.secrets)
        port: int = step.await_event("listening")["port"]
        return step, port

    def lead(self, port: int, *trials: dict[str, Any], **changes: Any) -> Step:
        plan = self.plan("a", *trials, **changes)
        plan["hosts"]["b"]["port"] = port
        return self.a.start(plan, self.secrets)

    def run(self, *trials: dict[str, Any], **changes: Any) -> tuple[Step, Step]:
        """The whole round; the lead's step and the follower's."""
        follower, port = self.follow(*trials, **changes)
        lead = self.lead(port, *trials, **changes)
        lead.await_end()
        follower.await_end()
        return lead, follower

    def stop(self) -> None:
        for host in (self.a, self.b):
            host.stop_all()


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[Pair]:
    """Nothing that a test started on either outlives the block."""
    pair = Pair(folder)
    try:
        yield pair
    finally:
        pair.stop()


def a_far_trial(tool_path: str, **changes: Any) -> dict[str, Any]:
    """A trial of a server on `b`."""
    return a_trial(tool_path, **{"server": SERVE, **changes})
