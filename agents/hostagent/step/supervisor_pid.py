"""The pid of a step's supervisor, with what tells it from a later process of the same number."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import NamedTuple, Optional

from .. import lock
from ..errors import Busy
from ..files import write_bytes
from ..paths import StepDir
from ..platform.process_identity import read_boot_id, read_start_time

_UNKNOWN = "-"


class SupervisorPid(NamedTuple):
    """`started` and `boot` are None if the system does not report them."""

    pid: int
    started: Optional[str]
    boot: Optional[str]

    def is_this_process(self) -> bool:
        """Return whether the process of this number is the one that wrote the file."""
        return self.started == read_start_time(self.pid) and self.boot == read_boot_id()


def write_own_pid(step: StepDir) -> None:
    pid = os.getpid()
    words = (str(pid), read_start_time(pid) or _UNKNOWN, read_boot_id() or _UNKNOWN)
    write_bytes(step.pid_file, " ".join(words).encode())


def read_pid(step: StepDir) -> SupervisorPid:
    words = step.pid_file.read_text().split()
    pid, started, boot = (words + [_UNKNOWN] * 3)[:3] if words else ("0", _UNKNOWN, _UNKNOWN)
    return SupervisorPid(int(pid), _parse_word(started), _parse_word(boot))


def _parse_word(word: str) -> Optional[str]:
    return None if word == _UNKNOWN else word


def send_signal(step: StepDir, number: int) -> bool:
    """Send a signal to the living supervisor of a step; False if there is none.

    Busy if the step is locked by a process that this machine does not have: another machine or
    container shares the work directory, and its pids mean other processes here.
    """
    if not lock.is_held(step.lock) or not step.pid_file.exists():
        return False
    supervisor = read_pid(step)
    with _open_process(supervisor.pid) as pidfd:
        if supervisor.is_this_process():
            _send(supervisor.pid, pidfd, number)
            return True
    if not lock.is_held(step.lock):  # it has just ended
        return False
    raise Busy(
        f"{step} runs on another machine or in another container, which shares the folder "
        f"{step.root}; give each host a separate work directory"
    )


@contextlib.contextmanager
def _open_process(pid: int) -> Iterator[Optional[int]]:
    """Yield a descriptor that keeps meaning this process; None if the system has none."""
    pidfd = None
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(pid)
    try:
        yield pidfd
    finally:
        if pidfd is not None:
            os.close(pidfd)


def _send(pid: int, pidfd: Optional[int], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if pidfd is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(pidfd, number)
