"""Keep the machine awake while a round runs: a laptop that is not used would fall asleep.

systemd's `systemd-inhibit` and macOS's `caffeinate` hold the lock as long as the command that they
run: a `cat` whose input ends with this process, so the lock never outlives it.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from typing import Optional

_COMMANDS = (
    (
        "systemd-inhibit",
        "--what=sleep:idle",
        "--mode=block",
        "--who=Pitwall",
        "--why=a benchmark runs",
    ),
    ("caffeinate", "-i", "-m", "-s"),
)
_END_S = 2.0


@contextlib.contextmanager
def inhibit_sleep() -> Iterator[None]:
    """Hold the lock for the block, if the system has one and this user may take it.

    Without it the block runs all the same: a trial in which the machine slept is not used
    (`suspended_s`). The system's refusal is in the log of the supervisor.
    """
    process = _start()
    try:
        yield
    finally:
        if process is not None:
            _end(process)


def _start() -> Optional[subprocess.Popen[bytes]]:
    for name, *options in _COMMANDS:
        program = shutil.which(name)
        if program is not None:
            with contextlib.suppress(OSError):
                return subprocess.Popen(
                    [program, *options, "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
                )
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
