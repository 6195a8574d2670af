"""Looking at a job's cases between two rounds: which of them are decided and need no more.

At the planned numbers of clean blocks only (`stats.looks`). What a look found is kept with the job
and never done again, so that a job that begins anew on another host goes on where it was.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from orchestrator.benchmarks.loads import primary_of
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.dispatch.seen_cases import (
    CaseBlocks,
    Contest,
    SeenCase,
    message_of,
    seen_case,
)
from orchestrator.loadtools.metrics import metrics_of
from orchestrator.measurements.readings import values_of
from orchestrator.runs import turns
from orchestrator.runs.models import Job, Look, Trial, Until
from orchestrator.runs.standings import newest_looks
from orchestrator.runs.states import TrialState, Validity
from orchestrator.stats.looks import look_is_due
from orchestrator.stats.stopping import Standing, standings


class Arm(NamedTuple):
    """A trial of a block: the position of its variant, where it ran, and what became of it."""

    position: int
    trial: UUID
    host: UUID | None
    state: str
    validity: str


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
    return {case: seen_case(blocks, contest, values) for case, blocks in due.items()}


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
        message=message_of(seen, standing, contest),
    )
