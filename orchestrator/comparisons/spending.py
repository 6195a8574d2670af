"""How many verdicts came before this one on the same blocks: the alpha that each case may spend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from orchestrator.comparisons.exclusions import SharedRun
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.measurements.comparability import hash_block
from orchestrator.runs.models import Job, Until
from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.paired import FEWEST_BLOCKS


@dataclass(slots=True, kw_only=True)
class _RunBlocks:
    """All blocks that a run can have."""

    requested_at: datetime
    analyses: int
    blocks: set[int]


def load_spending(runs: Sequence[SharedRun], cases: Sequence[PairedCase]) -> Mapping[str, Spending]:
    """Return the spending of each case, by its index as text, from the runs with blocks of it."""
    known = _load_run_blocks(runs)
    return {str(index): _build_spending(known, case) for index, case in enumerate(cases)}


def count_analyses(until: str) -> int:
    """Return the planned number of analyses of a run."""
    return 1 if until == Until.ROUNDS else len(INTERIM_BLOCKS)


def _load_run_blocks(runs: Sequence[SharedRun]) -> list[_RunBlocks]:
    """Return the runs, oldest first."""
    variants = list(chain.from_iterable(run.variants for run in runs))
    rows = Job.objects.filter(run__variants__in=variants).distinct().order_by()
    grouped: dict[object, _RunBlocks] = {}
    for job, run, rounds, until, at in rows.values_list(
        "pk", "run_id", "run__rounds", "run__until", "run__created_at"
    ):
        new = _RunBlocks(requested_at=at, analyses=count_analyses(until), blocks=set())
        grouped.setdefault(run, new).blocks.update(
            hash_block(job, number) for number in range(1, rounds + 1)
        )
    return sorted(grouped.values(), key=lambda each: each.requested_at)


def _build_spending(runs: Sequence[_RunBlocks], case: PairedCase) -> Spending:
    """Count the runs after which the case had enough blocks for a verdict."""
    blocks = case.blocks[0] if case.paired else frozenset()
    spending, known, verdicts = Spending(), 0, 0
    for run in runs:
        more = len(run.blocks & blocks)
        known += more
        if more and known >= FEWEST_BLOCKS:
            verdicts += 1
            spending = Spending(runs=verdicts, analyses=run.analyses)
    return spending
