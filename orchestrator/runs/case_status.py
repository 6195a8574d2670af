"""The status of each case of a run that continues until its cases are decided."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Sum

from cli.pitwall.units import format_duration
from orchestrator.benchmarks.models import Case
from orchestrator.runs.models import InterimAnalysis, Job, Run, Trial
from orchestrator.runs.states import TrialState
from orchestrator.stats.needed_blocks import FurtherBlocks, NeededBlocks
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.power import MOST_BLOCKS
from orchestrator.stats.stopping import BlocksLeft, estimate_blocks_left

ENDED = (TrialState.MEASURED, TrialState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStatus:
    """A case of a job: its newest interim analysis, if any, and the blocks that are left.

    `rounds`: measured rounds, including excluded blocks. `block_s`: the estimated duration of a
    block.
    """

    job: Job
    case: Case
    analysis: InterimAnalysis | None
    rounds: int
    block_s: float
    left: BlocksLeft

    @property
    def state(self) -> str:
        """Return decided, stopped early, open (it continues) or undecided (no blocks are left)."""
        if self.analysis is not None and self.analysis.decided:
            return "decided"
        if self.analysis is not None and self.analysis.futile:
            return "stopped early"
        return "open" if self.left.most else "undecided"

    @property
    def further(self) -> FurtherBlocks | None:
        """Return the blocks until a decision, by the newest analysis; None if it is unknown.

        Without enough blocks for an analysis, those until the first one. The share of blocks that
        are excluded is assumed to stay the same.
        """
        if self.state in {"decided", "stopped early"}:
            return None
        needed = _read_needed(self.analysis)
        if self.analysis is not None and needed is not None:
            return needed.count_further(self.analysis.blocks, self.analysis.excluded)
        first = FEWEST_BLOCKS - self.rounds
        return FurtherBlocks(probable=first, least=first, most=first) if first > 0 else None

    @property
    def text(self) -> str:
        """Return one line for the user."""
        analysis, state = self.analysis, self.state
        if analysis is not None and state in {"decided", "stopped early"}:
            return f"{state} after {analysis.blocks} blocks: {analysis.message}"
        if analysis is None and state == "open":
            return f"first analysis after {FEWEST_BLOCKS} clean blocks; {self.rounds} done"
        few = f"too few clean blocks in {self.rounds} rounds"
        known = f"after {analysis.blocks} blocks: {analysis.message}" if analysis else few
        return "; ".join(part for part in (known, self.missing_blocks_text) if part)

    @property
    def missing_blocks_text(self) -> str:
        """Return what would decide the case, for the user; empty if it is decided."""
        further = self.further
        if further is None:
            return ""
        if further.in_reach is None:
            return (
                f"it may stay open, even with {MOST_BLOCKS} more blocks: use a "
                "quieter host or a longer load"
            )
        return f"needs about {further.text} ({self._format_time(further)})"

    def _format_time(self, further: FurtherBlocks) -> str:
        """Return "6 min 0 s to 15 min 0 s"."""
        least, most = further.range
        shortest = format_duration(least * self.block_s)
        if most is None:
            return f"at least {shortest}"
        return (
            shortest if most == least else f"{shortest} to {format_duration(most * self.block_s)}"
        )


def _read_needed(analysis: InterimAnalysis | None) -> NeededBlocks | None:
    if analysis is None:
        return None
    probable, least, most = (
        analysis.needed_blocks,
        analysis.needed_least,
        analysis.needed_most,
    )
    if probable is None or least is None or most is None:
        return None
    return NeededBlocks(probable=probable, least=least, most=most)


def load_case_statuses(run: Run, jobs: Iterable[Job] | None = None) -> list[CaseStatus]:
    """Return the cases of these jobs (default: all jobs of the run) that its hosts can measure."""
    shown = {job.pk: job for job in (run.jobs.select_related("host") if jobs is None else jobs)}
    rows = (
        Trial.objects.filter(job__in=shown)
        .exclude(state=TrialState.UNSUPPORTED)
        .values("job_id", "case_id")
        .annotate(
            all_s=Sum("expected_s"),
            planned=Count("round", distinct=True),
            left=Count("round", distinct=True, filter=Q(state=TrialState.PLANNED)),
            ended=Count("round", distinct=True, filter=Q(state__in=ENDED)),
        )
        .order_by("job__created_at", "job_id", "case_id")
    )
    groups = list(rows)
    analyses = load_latest_analyses(shown)
    cases = Case.objects.in_bulk({row["case_id"] for row in groups})
    return [
        _build_case_status(row, shown[row["job_id"]], cases[row["case_id"]], analyses)
        for row in groups
    ]


def load_latest_analyses(jobs: Iterable[UUID]) -> dict[tuple[UUID, int], InterimAnalysis]:
    """Return the newest analysis of each case of these jobs by (job id, case id)."""
    rows = InterimAnalysis.objects.filter(job__in=list(jobs)).order_by("job", "case", "blocks")
    return {(analysis.job_id, analysis.case_id): analysis for analysis in rows}


def _build_case_status(
    row: Mapping[str, Any], job: Job, case: Case, analyses: dict[tuple[UUID, int], InterimAnalysis]
) -> CaseStatus:
    analysis = analyses.get((job.pk, case.pk))
    # While a case continues, a block is done when all its trials are.
    done = int(row["planned"] - row["left"] if row["left"] else row["ended"])
    # Assume that further blocks are not excluded.
    clean = done - analysis.excluded if analysis else done
    return CaseStatus(
        job=job,
        case=case,
        analysis=analysis,
        rounds=done,
        block_s=row["all_s"] / row["planned"],
        left=estimate_blocks_left(
            done=clean,
            analysed_at=analysis.blocks if analysis else 0,
            most=int(row["left"]),
            needed=analysis.needed_blocks if analysis else None,
        ),
    )
