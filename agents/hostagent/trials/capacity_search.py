"""The search for the highest rate that meets an objective: each probe is a pass of the trial."""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Optional

from ..errors import TrialFailed, UnderLoad
from ..load.load_output import get_measured_files, reduce_output
from ..readers.registry import count_errors
from ..step.plan import Search
from .capacity import CapacitySearch
from .objective import Probe, Verdict, evaluate
from .pass_context import PassContext
from .trial_pass import LoadRecord, PassRecord, run_pass


class ProbeRecord(NamedTuple):
    """`load`: its number among the measured loads; None for a discarded probe with a `failure`."""

    load: Optional[int]
    rate: float
    verdict: Verdict
    failure: Optional[TrialFailed] = None

    def as_json(self) -> dict[str, Any]:
        passed, reason = self.verdict
        return {"load": self.load, "rate": self.rate, "passed": passed, "reason": reason}


def search(context: PassContext, wanted: Search, record: PassRecord) -> dict[str, Any]:
    """Return "search" of result.json; the loads of the probes are added to the record.

    Raises TrialFailed if a probe fails for another reason than its load, or if no probe finished.
    """
    rates = CapacitySearch(wanted.low, wanted.high, wanted.max_probes, wanted.confirmations)
    probes: list[ProbeRecord] = []
    while (rate := rates.next_rate()) is not None:
        if probes:
            context.all_hosts.renew_trial_data()
        probe = _measure_probe(context._replace(rate=rate), wanted, record, rate)
        probes.append(probe)
        rates.add_probe(rate, probe.verdict.passed)
        context.all_hosts.sleep_until(time.monotonic() + context.trial.cooldown_s)
    if not record.loads and probes[-1].failure is not None:
        raise probes[-1].failure
    return {**rates.outcome(), "probes": [probe.as_json() for probe in probes]}


def _measure_probe(
    context: PassContext, wanted: Search, record: PassRecord, rate: float
) -> ProbeRecord:
    number = len(record.loads)
    try:
        run_pass(context, record)
    except UnderLoad as failed:
        return _discard_probe(context, number, rate, failed)
    loaded = record.loads[number]
    if loaded.outcome.hung:
        record.loads.pop()
        why = f"the load tool did not end within {loaded.load.wall_limit_s:g} s"
        return _discard_probe(
            context, number, rate, TrialFailed("tool_failed", why, loaded.files.output())
        )
    if loaded.problem is not None:
        return ProbeRecord(number, rate, Verdict(False, f"wrong answer: {loaded.problem}"))
    return ProbeRecord(number, rate, _evaluate_probe(context, wanted, loaded, rate))


def _discard_probe(
    context: PassContext, number: int, rate: float, failure: TrialFailed
) -> ProbeRecord:
    """Remove the files of a probe that did not finish: the next probe uses the same names."""
    get_measured_files(context.folder, number).remove()
    return ProbeRecord(None, rate, Verdict(False, failure.message), failure)


def _evaluate_probe(
    context: PassContext, wanted: Search, loaded: LoadRecord, rate: float
) -> Verdict:
    redactor = context.all_hosts.plan.secrets.redactor
    rows = reduce_output(loaded.files, context.trial.tool, loaded.load, redactor=redactor)
    errors = count_errors(context.trial.tool.reader, loaded.files.out, rows)
    return evaluate(wanted.objective, Probe(rows, errors, rate * wanted.duration_s))
