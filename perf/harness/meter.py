"""CPU time of all processes that a piece of work starts, including detached ones.

The work runs in a fork that adopts orphans (`PR_SET_CHILD_SUBREAPER`). A helper that an alternative
leaves in the background, such as ssh's ControlMaster, is therefore ended and counted as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from devstack.processes import find_descendants

PR_SET_CHILD_SUBREAPER = 36


class WorkFailedError(Exception):
    """The work raised, or exceeded its timeout; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterReading:
    """The return value of the work, and the CPU seconds of all processes that it started."""

    value: Any
    cpu_s: float


def measure_child(work: Callable[[], Any], *, limit_s: float) -> MeterReading:
    """Run `work` in a separate process; all its processes are ended afterwards."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _work_and_leave(work, write_end, limit_s)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answers:
        answer = answers.read()
    os.waitpid(pid, 0)
    if not answer:
        raise WorkFailedError("the metered process died without a word")
    value, cpu_s, trouble = pickle.loads(answer)
    if trouble:
        raise WorkFailedError(trouble)
    return MeterReading(value=value, cpu_s=cpu_s)


def _work_and_leave(work: Callable[[], Any], answers: int, limit_s: float) -> None:
    value, trouble = None, ""
    try:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGALRM, _raise_timeout)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        value = work()
    except BaseException:
        trouble = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _end_descendants()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        answer = pickle.dumps((value, used.ru_utime + used.ru_stime, trouble))
        with os.fdopen(answers, "wb") as pipe:
            pipe.write(answer)
        sys.stdout.flush()
        os._exit(0)


def _raise_timeout(_number: int, _frame: object) -> None:
    raise TimeoutError("the work took longer than it may")


def _end_descendants() -> None:
    """SIGTERM first, so that a master of ssh removes its socket."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        for pid in find_descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)
        deadline = time.monotonic() + 3
        while _reap() and time.monotonic() < deadline:
            time.sleep(0.01)


def _reap() -> bool:
    """Return True while a child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True
