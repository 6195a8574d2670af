"""The noise of a host from earlier runs, if it was not calibrated."""

import math
from collections import defaultdict
from uuid import UUID

from orchestrator.benchmarks.models import Benchmark
from orchestrator.fleet.models import Host
from orchestrator.fleet.selectors import load_host_changes
from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, TrialState
from orchestrator.stats.noise import Noise, estimate_noise

#: The most trials of a benchmark on a host that are read, newest first.
MOST_TRIALS = 4_000

#: Job, case key and round → variant → trial; None if the trial failed or is invalid.
Blocks = dict[tuple[UUID, str, int], dict[int, UUID | None]]


def load_earlier_noise(host: Host, benchmark: Benchmark, metric: str) -> dict[str, Noise]:
    """Return by case key how much ln(contender / baseline) varied from round to round.

    A difference of the two commits shifts all rounds alike and does not add to the spread.
    Therefore any comparison measures the noise. For each case the newest job with enough rounds is
    used; jobs from before the host's last change are not.
    """
    blocks = _load_blocks(host, benchmark)
    trials = [trial for pair in blocks.values() for trial in pair.values() if trial is not None]
    values = load_values(trials, [metric])
    ratios: dict[str, dict[UUID, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for (job, case, _), pair in blocks.items():
        first, second = (values.get(pair.get(at), {}).get(metric, 0.0) for at in (0, 1))  # type: ignore[arg-type]
        usable = first > 0 and second > 0
        ratios[case][job].append(math.log(second / first) if usable else None)
    return {
        case: noise for case, jobs in ratios.items() if (noise := _select_newest(jobs)) is not None
    }


def _select_newest(jobs: dict[UUID, list[float | None]]) -> Noise | None:
    """Jobs come newest first; None is an excluded round."""
    return next((noise for each in jobs.values() if (noise := _estimate(each)) is not None), None)


def _estimate(ratios: list[float | None]) -> Noise | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return estimate_noise(known, excluded=len(ratios) - len(known))


def _load_blocks(host: Host, benchmark: Benchmark) -> Blocks:
    trials = Trial.objects.filter(
        host=host,
        case__benchmark=benchmark,
        state__in=[TrialState.MEASURED, TrialState.FAILED],
        variant__position__lte=1,
    )
    if (change := load_host_changes(host).last()) is not None:
        trials = trials.filter(started_at__gte=change.at)
    rows = trials.order_by("-job__created_at", "job_id", "round").values_list(
        "job_id", "case__key", "round", "variant__position", "pk", "validity"
    )
    blocks: Blocks = defaultdict(dict)
    for job, case, number, variant, trial, validity in rows[:MOST_TRIALS]:
        blocks[job, case, number][variant] = trial if validity in COUNTED_VALIDITIES else None
    return blocks
