"""The process that carries out one step on its own, detached from whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import traceback
from typing import Any, Optional

from . import builds, lock
from .errors import Aborted, AgentError, BuildFailed, TrialFailed, Unsupported
from .files import tail_text, write_bytes
from .journal import Journal
from .paths import StepDir
from .plan import Plan, Trial, load_plan
from .processes import adopt_orphans, kill_descendants, kill_marked
from .trials import run_trial

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 20.0


def start(step: StepDir, command: list[str]) -> dict[str, Any]:
    """Leave a detached supervisor behind (`command` runs one); harmless where one runs or ran."""
    if os.name != "posix":
        raise Unsupported("this agent can run jobs on Linux and macOS only")
    if step.pid_file.exists():
        return {"pid": int(step.pid_file.read_text() or 0), "already": True}
    load_plan(step.plan, step.root)
    step.contact.touch()
    with open(step.log, "ab") as log:
        process = subprocess.Popen(
            command,
            cwd=step.root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while not step.pid_file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise AgentError(f"the supervisor did not start: {tail_text(step.log) or '(silent)'}")
        time.sleep(0.01)
    # The exit of `start` orphans the supervisor; nothing here waits for it.
    process.returncode = 0
    pid = int(step.pid_file.read_text())
    # Of two that start at once, one gets the lock; the other one's supervisor ends at once.
    return {"pid": pid} if pid == process.pid else {"pid": pid, "already": True}


def stop(step: StepDir) -> bool:
    """End the supervisor and all that it started; False where nothing of it was left."""
    pid = _living_pid(step)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while lock.is_held(step.lock) and time.monotonic() < deadline:
            time.sleep(0.02)
        if lock.is_held(step.lock):
            os.kill(pid, signal.SIGKILL)
    left = kill_marked(step.path)
    return pid is not None or left


def _living_pid(step: StepDir) -> Optional[int]:
    if not lock.is_held(step.lock) or not step.pid_file.exists():
        return None
    return int(step.pid_file.read_text())


def run(step: StepDir) -> None:
    """Carry out the step. The lock is held to the very end, whatever that is."""
    if lock.take(step.lock) is None:
        return
    signal.signal(signal.SIGTERM, _stopped)
    signal.signal(signal.SIGINT, _stopped)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    adopt_orphans()
    write_bytes(step.pid_file, str(os.getpid()).encode())
    journal = Journal(step.journal)
    try:
        journal.append("supervisor_started", pid=os.getpid())
        Round(step, load_plan(step.plan, step.root), journal).run()
        journal.append("round_done")
    except Aborted as abort:
        _end(journal, abort.message)
    except Exception as error:
        traceback.print_exc()
        _end(journal, f"{type(error).__name__}: {error}")
    finally:
        kill_descendants()
        journal.close()


def _end(journal: Journal, reason: str) -> None:
    kill_descendants()
    journal.append("aborted", reason=reason)


def _stopped(_number: int, _frame: object) -> None:
    # A second signal must not interrupt the tidying up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Aborted("stopped")


class Round:
    """All builds and trials of one plan, in order."""

    def __init__(self, step: StepDir, plan: Plan, journal: Journal) -> None:
        self._step = step
        self._plan = plan
        self._journal = journal
        self._broken: dict[str, BuildFailed] = {}

    def run(self) -> None:
        for build in self._plan.builds:
            self._beat()
            self._journal.append("build_started", commit=build.commit)
            began = time.monotonic()
            try:
                cached = builds.ensure(self._step, build)
            except BuildFailed as failed:
                self._broken[build.tree] = failed
                self._journal.append(
                    "build_failed",
                    commit=build.commit,
                    message=failed.message,
                    output=failed.output,
                )
                continue
            seconds = round(time.monotonic() - began, 3)
            self._journal.append("build_done", commit=build.commit, cached=cached, seconds=seconds)
        for trial in self._plan.trials:
            self._run_trial(trial)

    def _run_trial(self, trial: Trial) -> None:
        self._beat()
        if (self._step.trial(trial.id) / "result.json").exists():
            self._journal.append("trial_done", trial=trial.id)
            return
        self._journal.append("trial_started", trial=trial.id)
        try:
            self._need_build(trial)
            run_trial(self._step, trial, lambda *words: self._tell(trial, *words), self._beat)
        except TrialFailed as failed:
            self._fail(trial, failed)
        except Aborted:
            raise
        except (AgentError, OSError, subprocess.SubprocessError) as error:
            traceback.print_exc()
            kill_descendants()
            self._fail(trial, TrialFailed("internal", str(error)))
        else:
            self._journal.append("trial_done", trial=trial.id)

    def _fail(self, trial: Trial, failed: TrialFailed) -> None:
        self._journal.append(
            "trial_failed",
            trial=trial.id,
            code=failed.code,
            message=failed.message,
            output=failed.output,
        )

    def _need_build(self, trial: Trial) -> None:
        failed = self._broken.get(trial.tree)
        if failed is not None:
            raise TrialFailed("build_failed", failed.message, failed.output)

    def _tell(self, trial: Trial, phase: str, quiet_s: float) -> None:
        self._journal.append("phase", trial=trial.id, phase=phase, quiet_s=quiet_s)

    def _beat(self) -> None:
        """Aborted("silence") once the orchestrator has not asked for too long."""
        try:
            silent_s = time.time() - self._step.contact.stat().st_mtime
        except FileNotFoundError:
            return
        if silent_s > self._plan.silence_s:
            raise Aborted("silence")
