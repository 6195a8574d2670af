"""The verbs that carry out a step: with a supervisor left behind, or in the foreground."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import lock
from ..errors import AgentError
from ..files import no_space, tail_text
from ..paths import StepDir
from ..rounds import supervisor
from ..rounds.supervisor import WorkLocks
from ..step.plan import Plan
from ..step.plan_parser import load_plan

START_TIMEOUT_S = 10.0


def start(root: Path, options: Namespace) -> dict[str, Any]:
    """Leave a detached supervisor behind; harmless where one runs or ran."""
    step = _step(root, options)
    if step.pid_file.exists():
        return _already(step)
    plan = load_plan(step.plan, root)
    if plan.run_as is not None:
        # Whoever asks is told now, and no supervisor is left behind that could only fail.
        _load("sandbox.user").find_account(plan.run_as, root)
    locks = WorkLocks(step)
    if not locks.are_held:
        return _await_other(step)
    try:
        if step.pid_file.exists():  # another start came and went
            return _already(step)
        step.keepalive.touch()
        if not hasattr(os, "fork"):
            locks.release()
            return _leave_program_behind(step)
        return {"pid": _leave_behind(step, plan, locks)}
    finally:
        locks.release()


def supervise(root: Path, options: Namespace) -> None:
    step = _step(root, options)
    plan = load_plan(step.plan, root)
    locks = WorkLocks(step)
    if locks.are_held:
        supervisor.run(step, plan, lambda: None)
        locks.release()


def _step(root: Path, options: Namespace) -> StepDir:
    return StepDir(root, options.job, options.step)


def _already(step: StepDir) -> dict[str, Any]:
    return {"pid": int(step.pid_file.read_text() or 0), "already": True}


def _await_other(step: StepDir) -> dict[str, Any]:
    """Another `start` of this step has the lock and is about to tell the pid."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and lock.is_held(step.lock):
        if step.pid_file.exists():
            return _already(step)
        time.sleep(0.01)
    if step.pid_file.exists():
        return _already(step)
    raise _not_started(step)


def _leave_behind(step: StepDir, plan: Plan, locks: WorkLocks) -> int:
    """Fork a supervisor, which keeps the locks that we let go of; its pid once it works.

    Not a program of its own: to load Python and the agent a second time would take longer than
    all the rest of a short step.
    """
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_supervisor(step, plan, locks, tell)
    os.close(tell)
    with open(told, "rb") as pipe:
        if pipe.read():
            return pid
    raise _not_started(step)


def _leave_program_behind(step: StepDir) -> dict[str, Any]:
    pid = _load("platform.experimental.detached_supervisor").leave_behind(step)
    if pid is None:
        raise _not_started(step)
    return {"pid": pid}


def _become_supervisor(step: StepDir, plan: Plan, locks: WorkLocks, tell: int) -> None:
    def ready() -> None:
        os.write(tell, b"1")
        os.close(tell)

    try:
        os.setsid()
        os.chdir(step.root)
        _redirect(step.log)
        _close_others({*locks.fds, tell})
        supervisor.run(step, plan, ready)
        locks.release()
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stderr.flush()
        os._exit(0)


def _redirect(log: Path) -> None:
    """Let go of the caller's input and output: it waits for their end."""
    null = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)


def _close_others(kept: set[int]) -> None:
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in kept:
            _close(int(name))


def _close(fd: int) -> None:
    with contextlib.suppress(OSError):  # the one that listed the folder
        os.close(fd)


def _load(module: str) -> Any:
    return import_module(f"..{module}", __package__)


def _not_started(step: StepDir) -> AgentError:
    why = no_space(step.root) or tail_text(step.log) or "(silent)"
    return AgentError(f"the supervisor did not start: {why}")
