"""The search for the highest rate that meets an objective: each probe is a pass of the trial.

A percentile of too few requests says little. So at low rates a probe has up to `MOST_PASSES`
passes, whose requests count together, and the search goes no lower than their number allows.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple, Optional

from ..errors import TrialFailed, UnderLoad
from ..load.load_output import get_measured_files, reduce_output
from ..protocol import MOST_PASSES
from ..readers.registry import count_errors
from ..step.plan import Search
from .capacity import CapacitySearch
from .objective import Probe, Verdict, evaluate
from .pass_context import PassContext
from .trial_pass import LoadRecord, PassRecord, run_pass


class ProbeRecord(NamedTuple):
    """`loads`: its numbers among the measured loads; without the pass that had a `failure`."""

    loads: list[int]
    rate: float
    verdict: Verdict
    failure: Optional[TrialFailed] = None

    def as_json(self) -> dict[str, Any]:
        passed, reason = self.verdict
        return {"loads": self.loads, "rate": self.rate, "passed": passed, "reason": reason}


def search(context: PassContext, wanted: Search, record: PassRecord) -> dict[str, Any]:
    """Return "search" of result.json; the loads of the probes are added to the record.

    Raises TrialFailed if a probe fails for another reason than its load, or if no probe finished.
    """
    rates = CapacitySearch(
        wanted.low, wanted.high, wanted.max_probes, wanted.confirmations, _find_lowest(wanted)
    )
    probes: list[ProbeRecord] = []
    left = wanted.max_probes
    while (rate := rates.next_rate()) is not None:
        passes = _count_passes(wanted, rate)
        if passes > left:
            break
        left -= passes
        probe = _measure_probe(context._replace(rate=rate), wanted, record, passes)
        probes.append(probe)
        rates.add_probe(rate, probe.verdict.passed)
    if not record.loads and probes and probes[-1].failure is not None:
        raise probes[-1].failure
    return {**rates.outcome(), "probes": [probe.as_json() for probe in probes]}


def _find_lowest(wanted: Search) -> float:
    """Return the lowest rate at which a probe has all requests that its objective needs."""
    return min(wanted.low, wanted.requests / (MOST_PASSES * wanted.duration_s))


def _count_passes(wanted: Search, rate: float) -> int:
    """Return in how many passes a probe has all requests that its objective needs."""
    passes = math.ceil(wanted.requests / (rate * wanted.duration_s))
    return max(1, min(MOST_PASSES, passes))


def _measure_probe(
    context: PassContext, wanted: Search, record: PassRecord, passes: int
) -> ProbeRecord:
    """Measure the passes of a probe. It ends at one in which the server fails."""
    assert context.rate is not None
    first = len(record.loads)
    due = context.rate * wanted.duration_s
    results: list[Probe] = []
    for _ in range(passes):
        context.all_hosts.renew_trial_data()
        failure = _measure_pass(context, record)
        context.all_hosts.sleep_until(time.monotonic() + context.trial.cooldown_s)
        loads = list(range(first, len(record.loads)))
        if failure is not None:
            return ProbeRecord(loads, context.rate, Verdict(False, failure.message), failure)
        loaded = record.loads[-1]
        if loaded.problem is not None:
            verdict = Verdict(False, f"wrong answer: {loaded.problem}")
            return ProbeRecord(loads, context.rate, verdict)
        results.append(_read_pass(context, loaded, due))
    return ProbeRecord(loads, context.rate, evaluate(wanted.objective, Probe.merge(results)))


def _measure_pass(context: PassContext, record: PassRecord) -> Optional[TrialFailed]:
    """Add one load to the record; return why there is none if the server failed under load."""
    number = len(record.loads)
    failure: TrialFailed
    try:
        run_pass(context, record)
    except UnderLoad as failed:
        failure = failed
    else:
        loaded = record.loads[number]
        if not loaded.outcome.hung:
            return None
        record.loads.pop()
        why = f"the load tool did not end within {loaded.load.wall_limit_s:g} s"
        failure = TrialFailed("tool_failed", why, loaded.files.output())
    # The next pass uses the same names of files.
    get_measured_files(context.folder, number).remove()
    return failure


def _read_pass(context: PassContext, loaded: LoadRecord, due: float) -> Probe:
    redactor = context.all_hosts.plan.secrets.redactor
    rows = reduce_output(loaded.files, context.trial.tool, loaded.load, redactor=redactor)
    errors = count_errors(context.trial.tool.reader, loaded.files.out, rows)
    return Probe(rows, errors, due)
