"""The folders for data of a job, of each of its builds, and of its current trial.

Each is `data/<name>/content`. A record of the prepare steps that have run is next to it, where a
separate user cannot write. Folder and record are removed together, so a step whose effect is lost
runs again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple, Optional

from ..files import remove_tree, write_json
from ..paths import DATA, StepDir, build_dir, data_dir
from ..step.plan import PrepareStep, Trial
from .directories import Sandbox

_CONTENT = "content"
_RECORD = "prepared.json"


class _Record(NamedTuple):
    """`running`: the key of a step that has begun and not ended. `seconds`: key → duration.

    `owner`: the separate user that made the files.
    """

    owner: str
    running: Optional[str] = None
    seconds: dict[str, float] = {}


class DataFolders:
    """The folders of one job on this host."""

    def __init__(self, step: StepDir, sandbox: Sandbox) -> None:
        self._root, self._job = step.root, step.job
        self._sandbox = sandbox
        self._owner = sandbox.owner_note.decode()

    def remove_others(self) -> None:
        """Remove the data of other jobs, and of an earlier trial of this one."""
        for path in (self._root / DATA).glob("*"):
            if path.name.partition(".")[0] != self._job:
                remove_tree(path)
        self.remove_trial_data()

    def open(self, trial: Trial) -> None:
        """Create the folders of a trial, and open them and its build to measured code.

        A folder of another user, or with the data of an interrupted or failed step, is new. That of
        the job is only for steps that run once per job: other commits could read and change it.
        """
        self.remove_trial_data()
        scopes = _list_scopes(trial)
        for scope in scopes:
            if scope != "trial":
                self._create(scope, trial.tree)
        self.renew_trial_data()
        folders = [self._get_folder(scope, trial.tree) for scope in scopes]
        self._sandbox.open(trial.tree, *folders)

    def renew_trial_data(self) -> None:
        """Empty the folder of the trial: its processes start again."""
        content = self._get_folder("trial", "") / _CONTENT
        remove_tree(content)
        content.mkdir(parents=True)
        self._sandbox.give(content)

    def remove_trial_data(self) -> None:
        remove_tree(self._get_folder("trial", ""))

    def placeholders(self, trial: Trial) -> dict[str, str]:
        """Return {trial_data}, and {job_data} and {commit_data} if it has steps for these."""
        return {
            f"{scope}_data": str(self._get_folder(scope, trial.tree) / _CONTENT)
            for scope in _list_scopes(trial)
        }

    def find(self, step: PrepareStep, tree: str) -> Optional[float]:
        """Return how long the step took whose data exist; None if it has to run."""
        if step.each == "trial":
            return None
        return self._read_record(step.each, tree).seconds.get(step.key)

    def begin(self, step: PrepareStep, tree: str) -> None:
        """Record that the step runs: its data are incomplete until `end`."""
        if step.each != "trial":
            record = self._read_record(step.each, tree)
            self._write_record(step.each, tree, record._replace(running=step.key))

    def end(self, step: PrepareStep, tree: str, seconds: float) -> None:
        """Record that the step succeeded, and how long it took."""
        if step.each != "trial":
            durations = {**self._read_record(step.each, tree).seconds, step.key: seconds}
            self._write_record(step.each, tree, _Record(self._owner, None, durations))

    def _create(self, scope: str, tree: str) -> None:
        folder = self._get_folder(scope, tree)
        record = self._read_record(scope, tree)
        if record.owner != self._owner or record.running is not None:
            remove_tree(folder)
        content = folder / _CONTENT
        if not content.is_dir():
            content.mkdir(parents=True)
            self._sandbox.give(content)
            record = _Record(self._owner)
        self._write_record(scope, tree, record)  # prune reads it as the time of the last use

    def _get_folder(self, scope: str, tree: str) -> Path:
        names = {
            "job": self._job,
            "commit": f"{self._job}.commit-{build_dir(self._root, tree).name if tree else ''}",
            "trial": f"{self._job}.trial",
        }
        return data_dir(self._root, names[scope])

    def _read_record(self, scope: str, tree: str) -> _Record:
        """Return the record; that of an unknown user without a readable one."""
        try:
            return _Record(**json.loads((self._get_folder(scope, tree) / _RECORD).read_bytes()))
        except (OSError, ValueError, TypeError):
            return _Record("unknown")

    def _write_record(self, scope: str, tree: str, record: _Record) -> None:
        write_json(self._get_folder(scope, tree) / _RECORD, record._asdict())


def _list_scopes(trial: Trial) -> list[str]:
    return sorted({"trial", *(step.each for step in trial.prepare)})
