"""Run the prepare steps of a trial: commands that create data before its load."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from ..errors import Aborted, TrialFailed
from ..files import append_bytes, read_tail_bytes
from ..hosts.all_hosts import AllHosts, AnyProcess
from ..hosts.local_host import LOG_BYTES, log_name
from ..plain_text import strip_controls
from ..platform.limits import describe_exit
from ..protocol import PREPARE_LOG
from ..step.plan import PrepareStep, Trial, get_prepare_name
from .poll_pause import PollPause
from .trial_progress import TrialProgress

POLL_S = 0.02
#: The longest command in messages and results.
_TEXT = 400


class Prepared(NamedTuple):
    """A step that a trial needed. `runs`: how often the trial ran it; 0 if its data existed.

    `seconds`: the duration of the last run, also if that was in another trial.
    """

    step: PrepareStep
    seconds: float
    runs: int

    def as_json(self, number: int) -> dict[str, Any]:
        """Return PREPARED of protocol.py."""
        step = self.step
        return {
            "step": number + 1,
            "run": _describe(step),
            "each": step.each,
            "after": step.after,
            "seconds": self.seconds,
            "runs": self.runs,
        }


class PrepareRunner:
    """The prepare steps of all trials of a round.

    A failed step for the job or a commit is not repeated: each trial that needs it fails.
    """

    def __init__(self, all_hosts: AllHosts, pause: PollPause) -> None:
        self._all_hosts = all_hosts
        self._pause = pause
        self._failed: dict[tuple[str, str], TrialFailed] = {}

    def run(
        self,
        trial: Trial,
        after: str,
        placeholders: Mapping[str, str],
        progress: TrialProgress,
        record: dict[int, Prepared],
    ) -> None:
        """Run the steps after this event in order, and add them to the record by number (from 0).

        `placeholders`: those of the services, and the server's port if it runs. Raises TrialFailed
        at the first failed step.
        """
        for number, step in enumerate(trial.prepare):
            if step.after == after:
                before = record.get(number)
                seconds = self._find_done(trial, number, step)
                runs = before.runs if before else 0
                if seconds is None:
                    seconds = self._run(trial, number, step, placeholders, progress)
                    runs += 1
                record[number] = Prepared(step, seconds, runs)

    def _find_done(self, trial: Trial, number: int, step: PrepareStep) -> Optional[float]:
        if step.each == "trial":
            return None
        failed = self._failed.get(_get_scope(trial, step))
        if failed is not None:
            raise failed
        return self._all_hosts.find_prepared(trial, number)

    def _run(
        self,
        trial: Trial,
        number: int,
        step: PrepareStep,
        placeholders: Mapping[str, str],
        progress: TrialProgress,
    ) -> float:
        progress.report_phase(f"preparing data: step {number + 1} of {len(trial.prepare)}")
        began = time.monotonic()
        try:
            self._run_command(trial, number, step, placeholders)
        except TrialFailed as failed:
            if step.each != "trial" and failed.code == "prepare_failed":
                self._failed[_get_scope(trial, step)] = failed
            raise
        seconds = round(time.monotonic() - began, 3)
        self._all_hosts.end_prepare_step(trial, number, seconds)
        progress.report_prepared(number + 1, step.each, seconds)
        if step.each != "trial":
            self._pause.exclude(seconds)
        return seconds

    def _run_command(
        self, trial: Trial, number: int, step: PrepareStep, placeholders: Mapping[str, str]
    ) -> None:
        name = get_prepare_name(number)
        process = self._all_hosts.start(trial, name, placeholders)
        try:
            problem = self._await_end(process, step)
            output = process.output() if problem else ""
        except Aborted:
            raise
        except BaseException:
            process.stop()
            raise
        process.stop()
        self._keep_output(trial, name, process)
        if problem:
            who = f"prepare step {number + 1} ({_describe(step)!r})"
            raise TrialFailed("prepare_failed", f"{who} {problem}", strip_controls(output))

    def _await_end(self, process: AnyProcess, step: PrepareStep) -> str:
        """Return the reason why the step failed; empty if it succeeded."""
        deadline = time.monotonic() + step.timeout_s
        while (code := process.exit_code) is None:
            if time.monotonic() > deadline:
                return f"took longer than {step.timeout_s:g} s"
            self._all_hosts.heartbeat()
            time.sleep(POLL_S)
        return f"ended with {describe_exit(code)}" if code else ""

    def _keep_output(self, trial: Trial, name: str, process: AnyProcess) -> None:
        folder = self._all_hosts.step.trial(trial.id)
        title = f"$ {' '.join(process.argv)}"[:_TEXT]
        output = read_tail_bytes(folder / log_name(name), LOG_BYTES)
        append_bytes(folder / PREPARE_LOG, title.encode() + b"\n" + output, limit=LOG_BYTES)


def _get_scope(trial: Trial, step: PrepareStep) -> tuple[str, str]:
    return step.key, trial.tree if step.each == "commit" else ""


def _describe(step: PrepareStep) -> str:
    return strip_controls(" ".join(step.argv))[:_TEXT]
