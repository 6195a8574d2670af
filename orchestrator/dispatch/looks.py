"""Looking at a job's cases between two rounds: which of them are decided and need no more.

At the planned numbers of clean blocks only (`stats.looks`). What a look found is kept with the job
and never done again, so that a job that begins anew on another host goes on where it was.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from orchestrator.benchmarks.loads import primary_of
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.core.units import format_change
from orchestrator.loadtools.metrics import Metric, metrics_of
from orchestrator.results.recording.readings import values_of
from orchestrator.runs import turns
from orchestrator.runs.models import Job, Look, Trial, Until
from orchestrator.runs.standings import newest_looks
from orchestrator.runs.states import TrialState, Validity
from orchestrator.stats.comparison import Comparison, Verdict, compare_blocks
from orchestrator.stats.looks import ALPHA, EQUIVALENCE_ALPHA, look_is_due
from orchestrator.stats.stopping import Seen, Standing, standings

#: The verdicts of a case as its line tells them.
WORDS = {
    Verdict.REGRESSED: "regressed",
    Verdict.IMPROVED: "improved",
    Verdict.TRIVIAL: "a change smaller than matters",
    Verdict.EQUIVALENT: "no change",
    Verdict.INCONCLUSIVE: "not decided",
}

#: Of one block: position of the variant → its trial, in the order of time.
Block = dict[int, UUID]


class Arm(NamedTuple):
    """A trial of a block: the position of its variant, where it ran, and what became of it."""

    position: int
    trial: UUID
    host: UUID | None
    state: str
    validity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What cells a case of the run has: its primary metrics, and its contenders by position."""

    metrics: tuple[Metric, ...]
    contenders: Mapping[int, str]

    @property
    def cells(self) -> list[tuple[int, Metric]]:
        return [(at, metric) for at in self.contenders for metric in self.metrics]


@dataclass(slots=True, kw_only=True)
class CaseBlocks:
    """The blocks of a case that are through. `goes_on`: more of them are planned."""

    clean: list[Block]
    void: int = 0
    goes_on: bool = False


def take_looks(job: Job) -> None:
    """Looks at each case that has come to a planned number of clean blocks, or to its end."""
    if job.run.until == Until.ROUNDS:
        return
    contest = _contest(job)
    due = _due(job, contest)
    if not due:
        return
    seen = _seen(due, contest)
    found = standings(
        {case: each.as_seen for case, each in seen.items()},
        elsewhere=_p_values_elsewhere(job, due),
        cells=_cases_of_run(job) * len(contest.cells),
        screen=job.run.until == Until.SCREENED,
    )
    turns.note_looks(
        job, [_look(job, case, seen[case], found[case], contest) for case in sorted(found)]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCase:
    """A case's comparisons with the cell that each is of."""

    as_seen: Seen
    cells: tuple[tuple[int, Metric], ...]


def _contest(job: Job) -> Contest:
    variants = job.run.variants.select_related("commit").filter(position__gt=0)
    return Contest(
        metrics=metrics_of(primary_of(spec_of(job.run.definition))),
        contenders={each.position: each.commit.short_sha for each in variants},
    )


def _due(job: Job, contest: Contest) -> dict[int, CaseBlocks]:
    """The cases that get a look now."""
    looks = {case: look for (_, case), look in newest_looks([job.pk]).items()}
    settled = {case for case, look in looks.items() if look.decided or look.dropped}
    return {
        case: blocks
        for case, blocks in _blocks(job, 1 + len(contest.contenders)).items()
        if case not in settled
        and look_is_due(
            len(blocks.clean),
            looks[case].blocks if case in looks else 0,
            last=not blocks.goes_on,
        )
    }


def _blocks(job: Job, variants: int) -> dict[int, CaseBlocks]:
    """The blocks of each case, in the order of time.

    A block is clean if all its trials count and ran on one host; a job that was tried again may
    have begun it on another.
    """
    rows = (
        Trial.objects.filter(job=job)
        .exclude(state=TrialState.UNSUPPORTED)
        .order_by("round", "position")
        .values_list("case_id", "round", "variant__position", "pk", "host", "state", "validity")
    )
    grouped: dict[tuple[int, int], list[Arm]] = defaultdict(list)
    for case, number, position, trial, host, state, validity in rows:
        grouped[case, number].append(Arm(position, trial, host, state, validity))
    found: dict[int, CaseBlocks] = defaultdict(lambda: CaseBlocks(clean=[]))
    for (case, _), block in grouped.items():
        states = {arm.state for arm in block}
        if TrialState.PLANNED in states:
            found[case].goes_on = True
        elif _is_clean(block, variants):
            found[case].clean.append({arm.position: arm.trial for arm in block})
        elif states & {TrialState.MEASURED, TrialState.FAILED}:
            found[case].void += 1
    return found


def _is_clean(block: Sequence[Arm], variants: int) -> bool:
    together = len(block) == variants and len({arm.host for arm in block}) == 1
    return together and all(
        arm.state == TrialState.MEASURED and arm.validity in {Validity.VALID, Validity.SUSPECT}
        for arm in block
    )


def _seen(due: Mapping[int, CaseBlocks], contest: Contest) -> dict[int, SeenCase]:
    trials = chain.from_iterable(block.values() for each in due.values() for block in each.clean)
    values = values_of(list(trials), {metric.key for metric in contest.metrics})
    return {case: _seen_case(blocks, contest, values) for case, blocks in due.items()}


def _seen_case(
    blocks: CaseBlocks, contest: Contest, values: Mapping[UUID, Mapping[str, float]]
) -> SeenCase:
    found: list[tuple[tuple[int, Metric], Comparison]] = []
    for at, metric in contest.cells:
        before = _column(blocks.clean, 0, metric, values)
        after = _column(blocks.clean, at, metric, values)
        if any(a is not None and b is not None for a, b in zip(before, after, strict=True)):
            compared = compare_blocks(
                before,
                after,
                better=metric.better,
                margin=metric.margin,
                alpha=ALPHA,
                equivalence_alpha=EQUIVALENCE_ALPHA,
            )
            found.append(((at, metric), compared))
    return SeenCase(
        as_seen=Seen(
            blocks=len(blocks.clean),
            void=blocks.void,
            comparisons=tuple(each for _, each in found),
        ),
        cells=tuple(cell for cell, _ in found),
    )


def _column(
    blocks: Sequence[Block],
    position: int,
    metric: Metric,
    values: Mapping[UUID, Mapping[str, float]],
) -> list[float | None]:
    found = [values.get(block[position], {}).get(metric.key) for block in blocks]
    return [
        value if value is not None and math.isfinite(value) and value >= 0 else None
        for value in found
    ]


def _p_values_elsewhere(job: Job, due: Iterable[int]) -> list[float]:
    """The newest of all cases of the run that are not looked at now."""
    now = {(job.pk, case) for case in due}
    jobs = job.run.jobs.values_list("pk", flat=True)
    return [p for key, look in newest_looks(jobs).items() if key not in now for p in look.p_values]


def _cases_of_run(job: Job) -> int:
    """Cases that are or will be measured, each once a job."""
    trials = Trial.objects.filter(job__run=job.run_id).exclude(state=TrialState.UNSUPPORTED)
    return trials.order_by().values("job", "case").distinct().count()


def _look(job: Job, case: int, seen: SeenCase, standing: Standing, contest: Contest) -> Look:
    return Look(
        job=job,
        case_id=case,
        blocks=seen.as_seen.blocks,
        void=seen.as_seen.void,
        decided=standing.decided,
        dropped=standing.dropped,
        verdict=standing.verdict,
        needed_blocks=standing.needed_blocks,
        p_values=list(seen.as_seen.p_values),
        message=_message(seen, standing, contest),
    )


def _message(seen: SeenCase, standing: Standing, contest: Contest) -> str:
    if standing.dropped:
        return "nothing hints at a change"
    if standing.cell is None:
        return standing.obstacle
    at, metric = seen.cells[standing.cell]
    compared = seen.as_seen.comparisons[standing.cell]
    said = WORDS[compared.verdict]
    if compared.verdict is not Verdict.EQUIVALENT:
        title = f"{metric.title[0].lower()}{metric.title[1:]}"
        said += f": {title} {format_change(compared.change)}"
    if len(contest.contenders) > 1 and compared.verdict is not Verdict.EQUIVALENT:
        said += f" at {contest.contenders[at]}"
    return said if standing.decided else f"{said}; {standing.obstacle}"
