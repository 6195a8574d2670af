"""A trial on its way through its passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Optional

from ..hosts.all_hosts import Stage
from ..load.load_output import Traces
from ..load.load_runner import Outcome, put_load
from ..platform.processes import Child
from ..step.plan import Load, Trial

#: Told the phase and for how long nobody should ask.
Tell = Callable[[str, float], None]


class Run(NamedTuple):
    """A trial on its way. `rate`: that of a probe, None where nothing is searched for."""

    stage: Stage
    trial: Trial
    tool: Path
    tell: Tell
    rate: Optional[float] = None

    @property
    def folder(self) -> Path:
        return self.stage.step.trial(self.trial.id)

    def say(self, phase: str, quiet_s: float = 0.0) -> None:
        self.tell(phase if self.rate is None else f"probing {self.rate:,.0f}/s", quiet_s)

    def put(
        self,
        load: Load,
        words: Mapping[str, str],
        traces: Traces,
        while_running: Callable[[Child, float], None],
    ) -> Outcome:
        words = {**words, **traces.words}
        path = self.trial.path.get(self.stage.plan.me, ())
        return put_load(
            self.stage.step, self.trial, load, words, path, while_running, self.stage.grounds
        )
