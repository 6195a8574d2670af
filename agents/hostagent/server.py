"""The server under test: started, asked until it answers as the plan says, stopped."""

from __future__ import annotations

import http.client
import re
import time
from pathlib import Path
from typing import Optional

from . import answer, words
from .errors import AgentError, TrialFailed
from .files import tail_text
from .paths import StepDir, tree_dir
from .plan import Trial
from .port import check_free, free_port
from .processes import Child, environment
from .pulse import Pulse

_ATTEMPTS = 3
_POLL_S = 0.02
_STOP_GRACE_S = 5.0
_IN_USE = re.compile(r"address already in use|EADDRINUSE|port .*in use", re.IGNORECASE)


class Server:
    """One run of the server; `log` gets all that it writes."""

    def __init__(self, trial: Trial, step: StepDir, port: int, log: Path) -> None:
        self.port = port
        self.log = log
        self._ready = trial.ready
        tree = tree_dir(step.root, trial.tree)
        self.argv = words.replace(
            trial.server.argv, {"port": port, "tree": tree, "trial_dir": step.trial(trial.id)}
        )
        env = environment(step.path, trial.server.env)
        with open(log, "wb") as output:
            try:
                self.child = Child(
                    self.argv,
                    cwd=tree,
                    env=env,
                    stdout=output,
                    stderr=output,
                    cpus=trial.server.cpus,
                )
            except OSError as error:
                text = f"`{' '.join(self.argv)}` could not be started: {error}"
                raise TrialFailed("server_did_not_start", text) from error

    def output(self) -> str:
        return tail_text(self.log)

    def await_ready(self, pulse: Pulse) -> None:
        """Returns once the answer is right; TrialFailed when it ended or time is up."""
        deadline = time.monotonic() + self._ready.timeout_s
        while True:
            wrong = self._complaint()
            if wrong is None:
                return
            if self.child.exit_code is not None:
                raise self._ended("server_did_not_start", "before it answered")
            if time.monotonic() > deadline:
                raise self._not_ready(wrong)
            pulse.wait(_POLL_S)

    def _complaint(self) -> Optional[str]:
        """None if the answer is right, "" if there is none, else what is wrong with it."""
        try:
            return answer.complaint(self._ready, self.port)
        except (OSError, http.client.HTTPException):
            return ""

    def _not_ready(self, wrong: str) -> TrialFailed:
        waited = f"{self._ready.timeout_s:g} s"
        if wrong:
            return TrialFailed("wrong_answer", f"{wrong} (asked for {waited})", self.output())
        text = f"no answer to GET {self._ready.path} on port {self.port} within {waited}"
        return TrialFailed("server_not_ready", text, self.output())

    def check(self, when: str) -> None:
        """Raises TrialFailed where the server died or answers wrongly; `when` goes into it."""
        wrong = self._complaint()
        if self.child.exit_code is not None:
            raise self._ended("server_died", when)
        if wrong is not None:
            said = wrong or f"no answer to GET {self._ready.path}"
            raise TrialFailed("wrong_answer", f"{when}: {said}", self.output())

    def _ended(self, code: str, when: str) -> TrialFailed:
        text = f"the server ended {when} with exit code {self.child.exit_code}"
        return TrialFailed(code, text, self.output())

    def stop(self) -> None:
        self.child.stop(_STOP_GRACE_S)


def start(trial: Trial, step: StepDir, log: Path, pulse: Pulse) -> Server:
    """A server that answers as it should. A port that somebody took meanwhile is tried anew."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            return _start_once(trial, step, log, pulse)
        except TrialFailed as error:
            retry = trial.server.port is None and error.code == "server_did_not_start"
            if not (left and retry and _IN_USE.search(error.output)):
                raise
    raise AssertionError("unreachable")


def _start_once(trial: Trial, step: StepDir, log: Path, pulse: Pulse) -> Server:
    if trial.server.port is not None:
        check_free(trial.server.port)
    server = Server(trial, step, trial.server.port or free_port(), log)
    try:
        server.await_ready(pulse)
    except AgentError:
        server.stop()
        raise
    return server
