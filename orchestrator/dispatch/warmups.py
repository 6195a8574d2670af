"""The warm-up of a case in the next round, from the results of its earlier rounds.

If MSER-5 found that the measured window began within the warm-up, the warm-up is doubled. This
applies to all variants, since both sides of a block must be measured alike. It is never reduced
within the job.
"""

from collections.abc import Iterable, Mapping

from orchestrator.runs.models import Job, Trial
from orchestrator.runs.states import TrialState

#: The code of that reason (loadtools/thresholds.py).
TOO_SHORT = "warm_up_too_short"
MAX_FACTOR = 8
MAX_WARMUP_S = 120.0


def load_warmup_factors(job: Job) -> dict[int, int]:
    """Return the factor of each case's warm-up relative to the definition; 1 if omitted."""
    measured = Trial.objects.filter(job=job, round__lt=job.round, state=TrialState.MEASURED)
    return _compute_factors(measured.values_list("case_id", "round", "reasons"))


def _compute_factors(trials: Iterable[tuple[int, int, list[str]]]) -> dict[int, int]:
    rounds: dict[int, set[int]] = {}
    for case, number, reasons in trials:
        if any(reason.partition(":")[0] == TOO_SHORT for reason in reasons):
            rounds.setdefault(case, set()).add(number)
    return {case: min(MAX_FACTOR, 2 ** len(numbers)) for case, numbers in rounds.items()}


def lengthen_warmup(warmup_s: float, case: int, factors: Mapping[int, int]) -> float:
    """Return the warm-up of a case in seconds, at most MAX_WARMUP_S or the definition's value."""
    factor = factors.get(case, 1)
    return max(warmup_s, min(MAX_WARMUP_S, warmup_s * factor))
