"""The status of each case of a run that continues until its cases are decided."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Sum

from cli.pitwall.units import format_duration
from orchestrator.benchmarks.models import Case
from orchestrator.runs.models import InterimAnalysis, Job, Run, Trial
from orchestrator.runs.states import TrialState
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
    def more_blocks(self) -> int | None:
        """Return the estimated blocks until a decision.

        None if it is decided or unknown, or if it needs more than one run has.
        """
        needed = self._estimate_more_blocks()
        return None if needed is None or needed > MOST_BLOCKS else needed

    def _estimate_more_blocks(self) -> int | None:
        """The share of blocks that are excluded is assumed to stay the same."""
        if self.state in {"decided", "stopped early"}:
            return None
        analysis = self.analysis
        if analysis is None or analysis.needed_blocks is None:
            return max(1, FEWEST_BLOCKS - self.rounds) if self.rounds < FEWEST_BLOCKS else None
        measured = analysis.blocks + analysis.excluded
        more = (analysis.needed_blocks - analysis.blocks) * measured / analysis.blocks
        return max(1, math.ceil(more))

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
        more = self._estimate_more_blocks()
        if more is None:
            return ""
        if more > MOST_BLOCKS:
            return (
                f"it may stay open, even with {MOST_BLOCKS} more blocks: use a "
                "quieter host or a longer load"
            )
        blocks = f"{more} more block{'s' if more != 1 else ''}"
        return f"needs about {blocks} ({format_duration(more * self.block_s)})"


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
