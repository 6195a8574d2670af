"""The process that executes one step, detached from the process that started it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module

from .. import lock
from ..errors import Aborted, AgentError, Busy
from ..machine_lock import take_machine_lock
from ..paths import StepDir, get_host_lock
from ..step.journal import Journal
from ..step.plan import Plan
from ..step.supervisor_pid import write_own_pid


class WorkLocks:
    """The locks of the step, of the host and of the machine: their holder may work."""

    def __init__(self, step: StepDir, *, whole_machine: bool) -> None:
        """Raise Busy, with its name, if another step holds the host; also if a job of another host
        uses the machine, with `whole_machine`.

        `are_held` is False if this step runs already.
        """
        self._fds: list[int] = []
        step_lock = lock.take(step.lock, patience_s=lock.PATIENCE_S)
        self.are_held = step_lock is not None
        if step_lock is None:
            return
        host_fd = lock.take(get_host_lock(step.root), str(step), lock.PATIENCE_S)
        if host_fd is None:
            os.close(step_lock)
            holder = lock.read_holder(get_host_lock(step.root)) or "another step"
            raise Busy(f"{holder} uses this host; wait for its end, or stop it")
        self._fds = [host_fd, step_lock]
        if whole_machine:
            self._take_machine()

    def _take_machine(self) -> None:
        try:
            fd = take_machine_lock()
        except AgentError:
            self.release()
            raise
        if fd is not None:
            self._fds.insert(0, fd)

    @property
    def fds(self) -> tuple[int, ...]:
        return tuple(self._fds)

    def release(self) -> None:
        """Release the lock of the step last: a step that has ended leaves the host free."""
        while self._fds:
            os.close(self._fds.pop(0))


def run(step: StepDir, plan: Plan, ready: Callable[[], None]) -> None:
    """Execute the step; the caller holds its locks. `ready` is called after the pid is written."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _handle_signal)
    if hasattr(signal, "SIGHUP"):  # Windows has none
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    journal = Journal(step.journal, plan.secrets.redactor)
    try:
        write_own_pid(step)
        ready()
        journal.append("supervisor_started", pid=os.getpid())
        if not plan.is_empty:
            # Most of the agent is loaded only now, after `start` has returned its answer.
            import_module(".round_runner", __package__).run_round(step, plan, journal)
        journal.append("round_done")
    except Aborted as abort:
        journal.append("aborted", reason=abort.message, code=abort.code)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        journal.append("aborted", reason=f"{type(error).__name__}: {error}", code="internal")
    finally:
        journal.close()


def _handle_signal(_number: int, _frame: object) -> None:
    # A second signal must not interrupt the cleanup.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Aborted("stopped", "stopped")
