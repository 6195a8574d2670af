"""The interim analyses of a measurement on this machine: as on a server, but without rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.benchmarks.models import Case
from orchestrator.benchmarks.selectors import StoredSpec
from orchestrator.dispatch.case_data import (
    CaseBlocks,
    CaseComparisons,
    ComparisonSpec,
    compare_case,
    describe_decision,
)
from orchestrator.dispatch.here.reading import MeasuredTrial
from orchestrator.dispatch.here.rows import LocalRows
from orchestrator.runs.models import Trial, Until
from orchestrator.runs.trial_order import number_build
from orchestrator.stats.interim import is_analysis_due
from orchestrator.stats.power import MOST_BLOCKS
from orchestrator.stats.stopping import Decision, decide_cases


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The newest analysis of a case. `decided`: it needs no more rounds."""

    blocks: int
    decided: bool
    p_values: tuple[float, ...]
    message: str


class InterimAnalyses:
    """The newest analysis of each of the `cases`, which are those that can be measured."""

    def __init__(self, rows: LocalRows, cases: Sequence[Case]) -> None:
        self.newest: dict[int, CaseResult] = {}
        self._rows = rows
        self._cases = {case.pk: case for case in cases}
        stored = StoredSpec(rows.spec)
        self._spec = ComparisonSpec(
            primary={case.pk: stored.list_case_metrics(case.parameters) for case in cases},
            contenders={
                each.position: each.commit.short_sha for each in rows.variants if each.position
            },
        )

    def open_cases(self) -> set[int]:
        """Return the cases that still take rounds."""
        return {case for case in self._cases if not self.is_decided(case)}

    def analyse(self, results: Mapping[str, MeasuredTrial], after: int) -> list[str]:
        """Analyse each open case that is due after `after` rounds; return one line per analysis."""
        if self._rows.until == Until.ROUNDS:
            return []
        blocks = {case: self._blocks(case, results, after) for case in self.open_cases()}
        readings = {each.pk: results[str(each.pk)].readings for each in self._measured(results)}
        seen = {
            case: compare_case(case, each, self._spec, readings)
            for case, each in sorted(blocks.items())
            if self._is_due(case, each)
        }
        others = [each for case, each in self.newest.items() if case not in seen]
        decisions = decide_cases(
            {case: compared.data for case, compared in seen.items()},
            elsewhere=[p for each in others for p in each.p_values],
            cells=sum(map(self._spec.count_cells, self._cases)),
            screen=self._rows.until == Until.SCREENED,
        )
        for case, decision in decisions.items():
            self.newest[case] = self._build_result(seen[case], decision)
        return [self._format_line(case) for case in decisions]

    def lines(self) -> list[str]:
        """Return the status line of each analysed case."""
        return [self._format_line(case) for case in sorted(self.newest)]

    def is_decided(self, case: int) -> bool:
        return case in self.newest and self.newest[case].decided

    def _is_due(self, case: int, blocks: CaseBlocks) -> bool:
        before = self.newest[case].blocks if case in self.newest else 0
        return is_analysis_due(len(blocks.clean), before, last=not blocks.goes_on)

    def _measured(self, results: Mapping[str, MeasuredTrial]) -> list[Trial]:
        return [each for each in self._rows.trials if str(each.pk) in results]

    def _blocks(self, case: int, results: Mapping[str, MeasuredTrial], after: int) -> CaseBlocks:
        rounds: dict[int, dict[int, UUID]] = {number: {} for number in range(1, after + 1)}
        ended: dict[int, dict[int, bool]] = {number: {} for number in rounds}
        for trial in self._measured(results):
            if trial.case_id != case:
                continue
            counts = results[str(trial.pk)].counts
            ended[trial.round][trial.variant.position] = counts
            if counts:
                rounds[trial.round][trial.variant.position] = trial.pk
        variants, builds = len(self._rows.variants), self._rows.job.run.builds
        clean = {number: block for number, block in rounds.items() if len(block) == variants}
        blocks = CaseBlocks(
            clean=list(clean.values()),
            builds=[number_build(number, builds) for number in clean],
            excluded=after - len(clean),
            goes_on=after < self._rows.rounds,
        )
        for counted in ended.values():
            blocks.add_pairs(counted)
        return blocks

    def _build_result(self, seen: CaseComparisons, decision: Decision) -> CaseResult:
        message = describe_decision(seen, decision, self._spec)
        if decision.futile:
            message = f"stopped early: {message}"
        elif decision.needed is not None:
            further = decision.needed.count_further(seen.data.blocks)
            message += (
                f"; it may stay open, even with {MOST_BLOCKS} more blocks"
                if further.in_reach is None
                else f"; needs about {further.text}"
            )
        return CaseResult(
            blocks=seen.data.blocks,
            decided=decision.decided or decision.futile,
            p_values=seen.data.p_values,
            message=message,
        )

    def _format_line(self, case: int) -> str:
        analysis = self.newest[case]
        return f"{self._cases[case].label}, after {analysis.blocks} blocks: {analysis.message}"
