"""The commands `start` and `supervise`: execute a step detached or in the foreground."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import lock
from ..errors import AgentError, BadPlan
from ..files import describe_full_disk, read_tail_text
from ..paths import StepDir
from ..platform.descriptors import close_others
from ..rounds import supervisor
from ..rounds.supervisor import WorkLocks
from ..step.plan import Plan
from ..step.plan_parser import load_plan
from ..step.secret_values import read_secret_values
from ..step.supervisor_pid import read_pid

START_TIMEOUT_S = 10.0


def start(root: Path, options: Namespace) -> dict[str, Any]:
    """Start a detached supervisor; does nothing if one runs or ran."""
    step = _get_step(root, options)
    if step.pid_file.exists():
        return _read_running_pid(step)
    plan = _receive_secrets(load_plan(step.plan, root))
    if plan.run_as is not None:
        # Report the error to the caller, before a supervisor starts that would only fail.
        _load("sandbox.user").find_account(plan.run_as, root)
    locks = WorkLocks(step, whole_machine=plan.machine_lock)
    if not locks.are_held:
        return _await_other(step)
    try:
        if step.pid_file.exists():  # another `start` was faster
            return _read_running_pid(step)
        step.keepalive.touch()
        if not hasattr(os, "fork"):
            locks.release()
            return _start_program(step)
        return {"pid": _fork_supervisor(step, plan, locks)}
    finally:
        locks.release()


def supervise(root: Path, options: Namespace) -> None:
    step = _get_step(root, options)
    plan = _receive_secrets(load_plan(step.plan, root))
    locks = WorkLocks(step, whole_machine=plan.machine_lock)
    if locks.are_held:
        supervisor.run(step, plan, lambda: None)
        locks.release()


def _receive_secrets(plan: Plan) -> Plan:
    """Add the values of the secrets that the plan names, from the standard input."""
    names = plan.secret_names
    if not names:
        return plan
    if not hasattr(os, "fork"):
        raise BadPlan("this system cannot keep secrets out of logs; use a host with Linux or macOS")
    return plan._replace(secrets=read_secret_values(sys.stdin.buffer, names))


def _get_step(root: Path, options: Namespace) -> StepDir:
    return StepDir(root, options.job, options.step)


def _read_running_pid(step: StepDir) -> dict[str, Any]:
    return {"pid": read_pid(step).pid, "already": True}


def _await_other(step: StepDir) -> dict[str, Any]:
    """Return the pid that another `start` of this step is about to write; it has the lock."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and lock.is_held(step.lock):
        if step.pid_file.exists():
            return _read_running_pid(step)
        time.sleep(0.01)
    if step.pid_file.exists():
        return _read_running_pid(step)
    raise _build_start_error(step)


def _fork_supervisor(step: StepDir, plan: Plan, locks: WorkLocks) -> int:
    """Fork a supervisor, which keeps the locks; return its pid when it runs.

    It is no separate program: loading Python and the agent again would take longer than the rest
    of a short step.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_supervisor(step, plan, locks, write_end)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        if pipe.read():
            return pid
    raise _build_start_error(step)


def _start_program(step: StepDir) -> dict[str, Any]:
    pid = _load("platform.experimental.detached_supervisor").start_supervisor(step)
    if pid is None:
        raise _build_start_error(step)
    return {"pid": pid}


def _become_supervisor(step: StepDir, plan: Plan, locks: WorkLocks, write_end: int) -> None:
    def ready() -> None:
        os.write(write_end, b"1")
        os.close(write_end)

    try:
        os.setsid()
        os.chdir(step.root)
        _close_standard_streams(step.log)
        close_others({*locks.fds, write_end})
        supervisor.run(step, plan, ready)
        locks.release()
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stderr.flush()
        os._exit(0)


def _close_standard_streams(log: Path) -> None:
    """Close the input and output of the caller, which waits for their end."""
    null = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)


def _load(module: str) -> Any:
    return import_module(f"..{module}", __package__)


def _build_start_error(step: StepDir) -> AgentError:
    reason = describe_full_disk(step.root) or read_tail_text(step.log) or "(no output)"
    return AgentError(f"the supervisor did not start: {reason}")
