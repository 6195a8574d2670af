"""The comparisons of a case in an interim analysis, from its measured blocks. No database."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from cli.pitwall.units import format_change
from orchestrator.loadtools.metrics import Metric, choose_deciding_metrics, find_metrics
from orchestrator.stats.block_outcomes import BlockPair, Outcome, judge_outcomes
from orchestrator.stats.build_noise import BuildNoise
from orchestrator.stats.comparison import Comparison, Verdict, compare_blocks
from orchestrator.stats.conclusion import Withheld, withhold_verdict
from orchestrator.stats.interim import INTERIM_ALPHA, INTERIM_EQUIVALENCE_ALPHA
from orchestrator.stats.order_effect import find_order
from orchestrator.stats.stopping import CaseData, Decision

#: The verdict of a case in its status line.
VERDICT_TEXT = {
    Verdict.REGRESSED: "regressed",
    Verdict.IMPROVED: "improved",
    Verdict.TRIVIAL: "a change too small to matter",
    Verdict.EQUIVALENT: "no change",
    Verdict.INCONCLUSIVE: "not decided",
}

#: One block: position of the variant → its trial, in time order.
Block = dict[int, UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSpec:
    """`primary`: case → its primary metrics. `contenders`: position → name."""

    primary: Mapping[int, Sequence[str]]
    contenders: Mapping[int, str]

    def count_cells(self, case: int) -> int:
        return len(self.contenders) * len(self.primary[case])

    def list_cells(
        self, case: int, values: Iterable[Mapping[str, float]]
    ) -> list[tuple[int, Metric]]:
        """Return the contenders with the metrics that decide this case, by the values of its
        trials."""
        measured = {key for each in values for key in each}
        metrics = find_metrics(choose_deciding_metrics(self.primary[case], measured))
        return [(at, metric) for at in self.contenders for metric in metrics]


@dataclass(slots=True, kw_only=True)
class CaseBlocks:
    """The complete blocks of a case. `goes_on`: more of them are planned.

    `builds`: the number of the build that each clean block measured (`runs.trial_order`).
    `build_noise`: metric → that of the host, as calibrated.
    `pairs`: position of a contender → whether its trials and those of the baseline count.
    """

    clean: list[Block]
    builds: list[int]
    build_noise: Mapping[str, BuildNoise] = field(default_factory=dict)
    excluded: int = 0
    goes_on: bool = False
    pairs: defaultdict[int, list[BlockPair]] = field(default_factory=lambda: defaultdict(list))

    def add_pairs(self, counts: Mapping[int, bool]) -> None:
        """Add a block; `counts`: position of each variant with a result → whether it counts."""
        outcomes = {at: Outcome.COUNTS if each else Outcome.VOID for at, each in counts.items()}
        for at, outcome in outcomes.items():
            if at and 0 in outcomes:
                self.pairs[at].append((outcomes[0], outcome))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseComparisons:
    """A case's comparisons, each with its cell."""

    data: CaseData
    cells: tuple[tuple[int, Metric], ...]


def compare_case(
    case: int,
    blocks: CaseBlocks,
    spec: ComparisonSpec,
    values: Mapping[UUID, Mapping[str, float]],
) -> CaseComparisons:
    """Compare a case; `values`: trial → metric → value in its SI unit, None if unknown."""
    comparisons: list[tuple[tuple[int, Metric], Comparison]] = []
    trials = (values.get(trial, {}) for block in blocks.clean for trial in block.values())
    for at, metric in spec.list_cells(case, trials):
        before = _build_column(blocks.clean, 0, metric, values)
        after = _build_column(blocks.clean, at, metric, values)
        if any(a is not None and b is not None for a, b in zip(before, after, strict=True)):
            compared = compare_blocks(
                before,
                after,
                better=metric.better,
                margin=metric.margin,
                orders=[_find_block_order(block, at) for block in blocks.clean],
                # Both commits have builds of their own; 0 would be an unknown build.
                builds=[(2 * number + 1, 2 * number + 2) for number in blocks.builds],
                build_noise=blocks.build_noise.get(metric.key),
                alpha=INTERIM_ALPHA,
                equivalence_alpha=INTERIM_EQUIVALENCE_ALPHA,
            )
            comparisons.append(((at, metric), _withhold(compared, blocks.pairs[at])))
    return CaseComparisons(
        data=CaseData(
            blocks=len(blocks.clean),
            excluded=blocks.excluded,
            comparisons=tuple(each for _, each in comparisons),
        ),
        cells=tuple(cell for cell, _ in comparisons),
    )


def _find_block_order(block: Block, contender: int) -> int:
    places = list(block)
    return find_order(1 + places.index(0), 1 + places.index(contender))


def _withhold(compared: Comparison, pairs: Sequence[BlockPair]) -> Comparison:
    """Return the comparison without a proof of equivalence if one side lost more blocks."""
    if not judge_outcomes(pairs).differ:
        return compared
    verdict = withhold_verdict(compared.verdict, Withheld.EXCLUSIONS_DIFFER)
    if verdict is compared.verdict:
        return compared
    reason = "one side lost more blocks than the other"
    return replace(compared, verdict=verdict, reasons=(*compared.reasons, reason))


def _build_column(
    blocks: Sequence[Block],
    position: int,
    metric: Metric,
    values: Mapping[UUID, Mapping[str, float]],
) -> list[float | None]:
    readings = [values.get(block[position], {}).get(metric.key) for block in blocks]
    return [
        value if value is not None and math.isfinite(value) and value >= 0 else None
        for value in readings
    ]


def describe_decision(
    compared_case: CaseComparisons, decision: Decision, spec: ComparisonSpec
) -> str:
    """Return the status line of a case: the decision, or why there is none."""
    if decision.futile:
        return "no sign of a change"
    if decision.cell is None:
        return decision.obstacle
    at, metric = compared_case.cells[decision.cell]
    compared = compared_case.data.comparisons[decision.cell]
    verdict = decision.verdict if decision.decided else compared.verdict
    status = VERDICT_TEXT[verdict]
    if verdict is not Verdict.EQUIVALENT:
        title = f"{metric.title[0].lower()}{metric.title[1:]}"
        no_ratio = compared.change is None and compared.reasons
        shown = f", {compared.reasons[0]}" if no_ratio else f" {format_change(compared.change)}"
        status += f": {title}{shown}"
    if len(spec.contenders) > 1 and verdict is not Verdict.EQUIVALENT:
        status += f" at {spec.contenders[at]}"
    return status if decision.decided else f"{status}; {decision.obstacle}"
