"""Which cases of a measurement on this machine are decided: the looks of a server, without rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.benchmarks.loads import primary_of
from orchestrator.benchmarks.models import Case
from orchestrator.dispatch.here.reading import Measured
from orchestrator.dispatch.here.rows import Rows
from orchestrator.dispatch.seen_cases import CaseBlocks, Contest, SeenCase, message_of, seen_case
from orchestrator.loadtools.metrics import metrics_of
from orchestrator.runs.models import Trial, Until
from orchestrator.stats.looks import look_is_due
from orchestrator.stats.stopping import Standing, standings


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What the newest look at a case found. `settled`: it needs no more rounds."""

    blocks: int
    settled: bool
    p_values: tuple[float, ...]
    message: str


class Looks:
    """The newest look at each of the `cases`, which are those that can be measured."""

    def __init__(self, rows: Rows, cases: Sequence[Case]) -> None:
        self.newest: dict[int, Looked] = {}
        self._rows = rows
        self._cases = {case.pk: case for case in cases}
        self._contest = Contest(
            metrics=metrics_of(primary_of(rows.spec)),
            contenders={
                each.position: each.commit.short_sha for each in rows.variants if each.position
            },
        )

    def open_cases(self) -> set[int]:
        """The cases that still take rounds."""
        return {case for case in self._cases if not self.is_settled(case)}

    def take(self, found: Mapping[str, Measured], after: int) -> list[str]:
        """Looks at each open case that is due `after` so many rounds; a line for each of them."""
        if self._rows.until == Until.ROUNDS:
            return []
        blocks = {case: self._blocks(case, found, after) for case in self.open_cases()}
        readings = {each.pk: found[str(each.pk)].readings for each in self._measured(found)}
        seen = {
            case: seen_case(each, self._contest, readings)
            for case, each in sorted(blocks.items())
            if self._is_due(case, each)
        }
        others = [each for case, each in self.newest.items() if case not in seen]
        judged = standings(
            {case: each.as_seen for case, each in seen.items()},
            elsewhere=[p for each in others for p in each.p_values],
            cells=len(self._cases) * len(self._contest.cells),
            screen=self._rows.until == Until.SCREENED,
        )
        for case, standing in judged.items():
            self.newest[case] = self._looked(seen[case], standing)
        return [self._line(case) for case in judged]

    def lines(self) -> list[str]:
        """Where each case that was looked at stands."""
        return [self._line(case) for case in sorted(self.newest)]

    def is_settled(self, case: int) -> bool:
        return case in self.newest and self.newest[case].settled

    def _is_due(self, case: int, blocks: CaseBlocks) -> bool:
        before = self.newest[case].blocks if case in self.newest else 0
        return look_is_due(len(blocks.clean), before, last=not blocks.goes_on)

    def _measured(self, found: Mapping[str, Measured]) -> list[Trial]:
        return [each for each in self._rows.trials if str(each.pk) in found]

    def _blocks(self, case: int, found: Mapping[str, Measured], after: int) -> CaseBlocks:
        rounds: dict[int, dict[int, UUID]] = {number: {} for number in range(1, after + 1)}
        for trial in self._measured(found):
            if trial.case_id == case and found[str(trial.pk)].counts:
                rounds[trial.round][trial.variant.position] = trial.pk
        clean = [each for each in rounds.values() if len(each) == len(self._rows.variants)]
        return CaseBlocks(clean=clean, void=after - len(clean), goes_on=after < self._rows.rounds)

    def _looked(self, seen: SeenCase, standing: Standing) -> Looked:
        message = message_of(seen, standing, self._contest)
        if standing.dropped:
            message = f"screened out: {message}"
        elif standing.needed_blocks is not None:
            message += f"; about {standing.needed_blocks} blocks would settle it"
        return Looked(
            blocks=seen.as_seen.blocks,
            settled=standing.decided or standing.dropped,
            p_values=seen.as_seen.p_values,
            message=message,
        )

    def _line(self, case: int) -> str:
        look = self.newest[case]
        return f"{self._cases[case].label}, after {look.blocks} blocks: {look.message}"
