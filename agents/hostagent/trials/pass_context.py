"""The context of a pass: the hosts, the trial, its load tool and its rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Optional

from ..hosts.all_hosts import AllHosts
from ..load.load_output import LoadFiles
from ..load.load_runner import LoadOutcome, run_load
from ..platform.processes import Child
from ..step.plan import Load, Trial
from .prepare_runner import PrepareRunner
from .trial_progress import TrialProgress


class PassContext(NamedTuple):
    """`rate`: that of a probe, None outside a capacity search."""

    all_hosts: AllHosts
    trial: Trial
    tool: Path
    progress: TrialProgress
    prepare: PrepareRunner
    rate: Optional[float] = None

    @property
    def folder(self) -> Path:
        return self.all_hosts.step.trial(self.trial.id)

    def report_phase(self, phase: str) -> None:
        self.progress.report_phase(phase if self.rate is None else f"probing {self.rate:,.0f}/s")

    def run_load(
        self,
        load: Load,
        placeholders: Mapping[str, str],
        files: LoadFiles,
        while_running: Callable[[Child, float], None],
    ) -> LoadOutcome:
        placeholders = {**placeholders, **files.placeholders}
        path = self.trial.path.get(self.all_hosts.plan.me, ())
        return run_load(
            self.all_hosts.step,
            self.trial,
            load,
            placeholders,
            path,
            while_running,
            self.all_hosts.sandbox,
            self.all_hosts.on_load_side,
        )
