"""The progress of a run as a grid: the status of each case on each host.

With a single host, the columns are the commits.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Count, Q

from orchestrator.benchmarks.models import Case
from orchestrator.runs.cancelling import CANCELLED
from orchestrator.runs.case_status import CaseStatus
from orchestrator.runs.models import Job, Run, Trial
from orchestrator.runs.selectors import RunProgress
from orchestrator.runs.states import JOB_ENDED, TrialState

_ENDED = frozenset({"decided", "stopped early", "undecided"})
_OPEN = frozenset({"measuring", "under way", "queued"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A host, or a commit of a run with one host. `short` is the column header."""

    key: object
    short: str
    title: str


@dataclass(slots=True)
class Cell:
    """The trials of a case in one column, by their state."""

    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    running: bool = False
    status: CaseStatus | None = None

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        return self.counts[TrialState.MEASURED] + self.counts[TrialState.FAILED]

    @property
    def planned(self) -> int:
        return self.counts[TrialState.PLANNED]

    @property
    def measured(self) -> int:
        return self.counts[TrialState.MEASURED]

    @property
    def tenths(self) -> int:
        """Return the progress in tenths; trials that are not needed count as done."""
        full = self.done + self.counts[TrialState.NOT_NEEDED]
        return 10 * full // self.total if self.total else 0

    @property
    def failed(self) -> int:
        return self.counts[TrialState.FAILED]

    @property
    def state(self) -> str:
        """Return the most important fact about the cell in one or two words."""
        if self.running:
            return "measuring"
        if self.counts[CANCELLED]:
            return "cancelled"
        if self.counts[TrialState.PLANNED]:
            return "under way" if self.done else "queued"
        if self.status is not None and self.status.state in _ENDED:
            return self.status.state
        if self.failed:
            return "failed"
        if self.done and self.counts[TrialState.SKIPPED]:
            return "cut short"
        if self.counts[TrialState.UNSUPPORTED] == self.total:
            return "unsupported"
        return "done" if self.done else "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A case with a cell for each column; None if it is not measured there."""

    case: Case
    cells: tuple[Cell | None, ...]

    @property
    def states(self) -> set[str]:
        return {cell.state for cell in self.cells if cell}

    @property
    def goes_on(self) -> bool:
        return bool(self.states & _OPEN)

    @property
    def failed(self) -> bool:
        return any(cell.failed for cell in self.cells if cell)

    @property
    def running(self) -> bool:
        return any(cell.running for cell in self.cells if cell)

    @property
    def case_statuses(self) -> list[CaseStatus]:
        """Return its status on each host, if the run continues until its cases are decided."""
        statuses = {
            each.status.job.pk: each.status
            for each in self.cells
            if each and each.status and each.state != CANCELLED
        }
        return list(statuses.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Rows in an order that does not change during the run."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    by_host: bool


def load_grid(progress: RunProgress) -> Grid:
    """Return the grid with three queries, for a run of any size."""
    jobs = {part.job.pk: part.job for part in progress.jobs}
    hosts = _build_host_columns(jobs.values())
    by_host = len(hosts) > 1
    columns = hosts if by_host else _build_commit_columns(progress.run)
    place = {column.key: at for at, column in enumerate(columns)}
    cells: dict[int, dict[int, Cell]] = defaultdict(lambda: defaultdict(Cell))
    for case, job, variant, state, number in _count_trials(progress.run):
        at = place[get_host_key(jobs[job]) if by_host else variant]
        cells[case][at].counts[state] += number
    for part in progress.jobs:
        if part.current and part.job.state not in JOB_ENDED:
            at = place[get_host_key(part.job) if by_host else part.current.variant_id]
            cells[part.current.case_id][at].running = _is_wanted(part.current)
        for each in part.case_statuses:
            for at in [place[get_host_key(part.job)]] if by_host else list(cells[each.case.pk]):
                cells[each.case.pk][at].status = each
    return Grid(columns=columns, rows=_load_rows(cells, len(columns)), by_host=by_host)


def get_host_key(job: Job) -> object:
    """Return a key that is equal for jobs on one host, or for jobs that wait for the same hosts."""
    if job.host_id is not None:
        return job.host_id
    return next(
        (place.host_selector for place in job.placements.all() if place.role == "target"), ""
    )


def _is_wanted(trial: Trial) -> bool:
    return trial.state == TrialState.PLANNED


def _build_host_columns(jobs: Iterable[Job]) -> tuple[Column, ...]:
    columns: dict[object, Column] = {}
    for job in jobs:
        title = job.host.name if job.host else describe_request(job)
        columns.setdefault(
            get_host_key(job), Column(key=get_host_key(job), short=title, title=title)
        )
    return tuple(columns.values())


def describe_request(job: Job) -> str:
    """Describe what a job without a host waits for; `placements` and profiles are prefetched."""
    place = next((each for each in job.placements.all() if each.role == "target"), None)
    if place is None:
        return "a host to come"
    if place.wanted_profile is not None:
        return f"any {place.wanted_profile.name}"
    return f"any tagged {place.wanted_tag}"


def _build_commit_columns(run: Run) -> tuple[Column, ...]:
    return tuple(
        Column(key=each.pk, short=each.commit.sha[:7], title=each.commit.subject)
        for each in run.variants.all()
    )


def _count_trials(run: Run) -> Sequence[tuple[int, UUID, int, str, int]]:
    """Return (case, job, variant, state, count); cancelled trials have a separate state."""
    cancelled = Q(state=TrialState.SKIPPED, message__startswith=CANCELLED)
    rows = (
        Trial.objects.filter(job__run=run)
        .order_by()
        .values_list("case", "job", "variant", "state")
        .annotate(number=Count("pk"), cancelled=Count("pk", filter=cancelled))
    )
    counts: list[tuple[int, UUID, int, str, int]] = []
    for case, job, variant, state, number, out in rows:
        counts.append((case, job, variant, state, number - out))
        if out:
            counts.append((case, job, variant, CANCELLED, out))
    return counts


def _load_rows(cells: Mapping[int, Mapping[int, Cell]], width: int) -> tuple[Row, ...]:
    """Return rows in the order of the definition's matrix, as the cases were created."""
    cases = Case.objects.in_bulk(cells)
    return tuple(
        Row(case=cases[key], cells=tuple(cells[key].get(at) for at in range(width)))
        for key in sorted(cells)
    )
