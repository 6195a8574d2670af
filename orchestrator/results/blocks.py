"""The blocks of a comparison: for each case and host, the paired trials of two commits.

A block is one round of one job: baseline and contender measured next to each other in time. A
block counts only if both of its trials are valid enough; what is thrown away is counted.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from uuid import UUID

from orchestrator.benchmarks.models import Benchmark, Commit, Definition
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import TrialState, Validity

#: (host id, case id)
CellKey = tuple[UUID, int]


@dataclass(slots=True, kw_only=True)
class Cell:
    """All blocks of one case on one host: pairs of trial ids, baseline first.

    `reasons` are those of each suspect or invalid trial in any of them.
    """

    pairs: list[tuple[UUID, UUID]] = field(default_factory=list)
    voided: int = 0
    suspect: int = 0
    reasons: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The blocks of two commits under one definition; `left_out` counts those of others."""

    definition: Definition
    cells: dict[CellKey, Cell]
    left_out: int


def blocks_of(
    benchmark: Benchmark, baseline: Commit, contender: Commit, run: Run | None = None
) -> Blocks | None:
    """The blocks of two commits, over all runs that measured both, or over one run.

    Definitions differ in what they measure, so only the newest one that has such blocks counts.
    None where the commits never shared a block.
    """
    trials = Trial.objects.filter(
        job__run__definition__benchmark=benchmark,
        variant__commit__in=[baseline, contender],
        state__in=[TrialState.MEASURED, TrialState.FAILED],
    )
    if run is not None:
        trials = trials.filter(job__run=run)
    rows = trials.values_list(
        "pk",
        "job_id",
        "host_id",
        "case_id",
        "round",
        "variant__commit_id",
        "state",
        "validity",
        "reasons",
        "job__run__definition_id",
    ).order_by("job__created_at", "round")
    grouped: dict[tuple, dict[int, tuple]] = defaultdict(dict)
    for pk, job, host, case, number, commit, state, validity, reasons, definition in rows:
        grouped[host, case, job, number, definition][commit] = (pk, state, validity, reasons)
    shared = {key: block for key, block in grouped.items() if len(block) == 2}
    definitions = Definition.objects.in_bulk({key[4] for key in shared})
    newest = max(definitions.values(), key=lambda each: each.version, default=None)
    if newest is None:
        return None
    mine = {key: block for key, block in shared.items() if key[4] == newest.pk}
    return Blocks(
        definition=newest,
        cells=_cells(mine, baseline.pk, contender.pk),
        left_out=len(shared) - len(mine),
    )


def _cells(
    grouped: dict[tuple, dict[int, tuple]], baseline: int, contender: int
) -> dict[CellKey, Cell]:
    cells: dict[CellKey, Cell] = defaultdict(lambda: Cell())
    for (host, case, *_), block in grouped.items():
        cell = cells[host, case]
        pair = (block[baseline], block[contender])
        cell.reasons += [reasons for _, _, v, reasons in pair if v != Validity.VALID]
        if all(state == TrialState.MEASURED and _counts(v) for _, state, v, _ in pair):
            cell.pairs.append((pair[0][0], pair[1][0]))
            cell.suspect += any(v == Validity.SUSPECT for _, _, v, _ in pair)
        else:
            cell.voided += 1
    return dict(cells)


def _counts(validity: str) -> bool:
    return validity in {Validity.VALID, Validity.SUSPECT}
