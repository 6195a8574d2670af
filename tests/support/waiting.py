"""Waiting until another process or thread has done something."""

import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any


def wait_until(
    holds: Callable[[], Any],
    complaint: str = "it did not happen in time",
    *,
    timeout_s: float = 120,
) -> None:
    """Return as soon as the condition holds; fail with the complaint after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.05)


def wait_for_port(port: int, process: subprocess.Popen[Any]) -> None:
    """Until something listens on the port of this machine; fail if the process has ended."""

    def listens() -> bool:
        assert process.poll() is None, f"{process.args} ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, f"{process.args} does not listen")
