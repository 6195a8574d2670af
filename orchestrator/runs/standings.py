"""Where the cases of a run stand that goes on until they are decided, and what it still takes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Sum

from orchestrator.benchmarks.models import Case
from orchestrator.core.units import format_duration
from orchestrator.runs.models import Job, Look, Run, Trial
from orchestrator.runs.states import TrialState
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.power import MOST_BLOCKS
from orchestrator.stats.stopping import BlocksLeft, blocks_left

ENDED = (TrialState.MEASURED, TrialState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStanding:
    """A case of a job: the newest look at it, if any, and the blocks that are left.

    `rounds` were measured, void ones included. `block_s`: about how long a block takes.
    """

    job: Job
    case: Case
    look: Look | None
    rounds: int
    block_s: float
    left: BlocksLeft

    @property
    def state(self) -> str:
        """decided, screened out, open (it goes on) or undecided (nothing is left)."""
        if self.look is not None and self.look.decided:
            return "decided"
        if self.look is not None and self.look.dropped:
            return "screened out"
        return "open" if self.left.most else "undecided"

    @property
    def more_blocks(self) -> int | None:
        """How many more blocks would settle it; None for what is settled, or where nobody knows."""
        if self.state in {"decided", "screened out"}:
            return None
        if self.look is None or self.look.needed_blocks is None:
            return max(1, FEWEST_BLOCKS - self.rounds) if self.rounds < FEWEST_BLOCKS else None
        return max(1, self.look.needed_blocks - self.look.blocks)

    @property
    def text(self) -> str:
        """One line for people."""
        look, state = self.look, self.state
        if look is not None and state in {"decided", "screened out"}:
            return f"{state} after {look.blocks} blocks: {look.message}"
        if look is None and state == "open":
            return f"first look after {FEWEST_BLOCKS} clean blocks; {self.rounds} done"
        few = f"too few clean blocks in {self.rounds} rounds"
        known = f"after {look.blocks} blocks: {look.message}" if look else few
        return "; ".join(part for part in (known, self.wanted) if part)

    @property
    def wanted(self) -> str:
        """What would settle it, for people; empty for what is settled."""
        look, more = self.look, self.more_blocks
        if more is None:
            return ""
        if look is not None and (look.needed_blocks or 0) >= MOST_BLOCKS:
            return f"{MOST_BLOCKS} blocks would not settle it: take a quieter host or a longer load"
        blocks = f"{more} more block{'s' if more != 1 else ''}"
        return f"needs about {blocks} ({format_duration(more * self.block_s)})"


def standings_of(run: Run, jobs: Iterable[Job] | None = None) -> list[CaseStanding]:
    """The cases of these jobs (all of the run without `jobs`) that its hosts can measure."""
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
    found = list(rows)
    looks = newest_looks(shown)
    cases = Case.objects.in_bulk({row["case_id"] for row in found})
    return [_standing(row, shown[row["job_id"]], cases[row["case_id"]], looks) for row in found]


def newest_looks(jobs: Iterable[UUID]) -> dict[tuple[UUID, int], Look]:
    """The newest look at each case of these jobs: (job id, case id) → look."""
    rows = Look.objects.filter(job__in=list(jobs)).order_by("job", "case", "blocks")
    return {(look.job_id, look.case_id): look for look in rows}


def _standing(
    row: Mapping[str, Any], job: Job, case: Case, looks: dict[tuple[UUID, int], Look]
) -> CaseStanding:
    look = looks.get((job.pk, case.pk))
    # While it goes on a block is done when all of it is.
    done = int(row["planned"] - row["left"] if row["left"] else row["ended"])
    # What was void so far is taken not to be so from now on.
    clean = done - look.void if look else done
    return CaseStanding(
        job=job,
        case=case,
        look=look,
        rounds=done,
        block_s=row["all_s"] / row["planned"],
        left=blocks_left(
            done=clean,
            looked_at=look.blocks if look else 0,
            most=int(row["left"]),
            needed=look.needed_blocks if look else None,
        ),
    )
