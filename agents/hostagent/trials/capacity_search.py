"""The search for the highest rate that meets an objective: a pass of the trial for each probe."""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Optional

from ..errors import TrialFailed, UnderLoad
from ..load.load_output import measured, reduce
from ..readers.registry import errors_of
from ..step.plan import Search
from .capacity import Search as Rates
from .objective import Probe, Verdict, judge
from .pass_context import Run
from .trial_pass import Loaded, Record, run_pass


class Probed(NamedTuple):
    """`load`: its number among the measured loads, None where nothing of it was kept.

    `failure` is then why.
    """

    load: Optional[int]
    rate: float
    verdict: Verdict
    failure: Optional[TrialFailed] = None

    def told(self) -> dict[str, Any]:
        passed, why = self.verdict
        return {"load": self.load, "rate": self.rate, "passed": passed, "why": why}


def search(run: Run, wanted: Search, record: Record) -> dict[str, Any]:
    """ "search" of result.json; the probes' loads are in the record.

    TrialFailed where a probe fails for another reason than its load, or none came to its end.
    """
    rates = Rates(wanted.low, wanted.high, wanted.max_probes, wanted.confirmations)
    probes: list[Probed] = []
    while (rate := rates.next_rate()) is not None:
        probe = _probe(run._replace(rate=rate), wanted, record, rate)
        probes.append(probe)
        rates.tell(rate, probe.verdict.passed)
        run.stage.sleep_until(time.monotonic() + run.trial.cooldown_s)
    if not record.loads and probes[-1].failure is not None:
        raise probes[-1].failure
    return {**rates.outcome(), "probes": [probe.told() for probe in probes]}


def _probe(run: Run, wanted: Search, record: Record, rate: float) -> Probed:
    number = len(record.loads)
    try:
        run_pass(run, record)
    except UnderLoad as failed:
        return _not_kept(run, number, rate, failed)
    loaded = record.loads[number]
    if loaded.outcome.hung:
        record.loads.pop()
        why = f"the load tool did not end within {loaded.load.wall_limit_s:g} s"
        return _not_kept(run, number, rate, TrialFailed("tool_failed", why, loaded.traces.said()))
    return Probed(number, rate, _judged(run, wanted, loaded, rate))


def _not_kept(run: Run, number: int, rate: float, failure: TrialFailed) -> Probed:
    """Not passed, and the next probe's files have the same names."""
    measured(run.folder, number).remove()
    return Probed(None, rate, Verdict(False, failure.message), failure)


def _judged(run: Run, wanted: Search, loaded: Loaded, rate: float) -> Verdict:
    rows = reduce(loaded.traces, run.trial.tool, loaded.load)
    errors = errors_of(run.trial.tool.reader, loaded.traces.out, rows)
    return judge(wanted.objective, Probe(rows, errors, rate * wanted.duration_s))
