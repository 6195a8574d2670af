"""Interim analyses of a job's cases between two rounds: which cases are decided.

A case is analysed only at the planned numbers of clean blocks (`stats.interim`). Each analysis is
stored with the job and never repeated, so a job that restarts on another host continues from it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from orchestrator.benchmarks.models import Case
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.dispatch.case_data import (
    CaseBlocks,
    CaseComparisons,
    ComparisonSpec,
    compare_case,
    describe_decision,
)
from orchestrator.fleet.selectors import load_host_changes
from orchestrator.measurements.build_noise import load_build_noise
from orchestrator.measurements.readings import load_values
from orchestrator.runs import claims
from orchestrator.runs.case_status import load_latest_analyses
from orchestrator.runs.models import InterimAnalysis, Job, Trial, Until
from orchestrator.runs.states import TrialState, is_counted
from orchestrator.runs.trial_order import number_build
from orchestrator.stats.interim import is_analysis_due
from orchestrator.stats.stopping import Decision, decide_cases

ENDED = frozenset({TrialState.MEASURED, TrialState.FAILED})


class BlockTrial(NamedTuple):
    """A trial of a block: its host, its outcome, and the position of its variant or in its job."""

    position: int
    trial: UUID
    host: UUID | None
    state: str
    validity: str

    @property
    def counts(self) -> bool:
        return is_counted(self.state, self.validity)


def analyse_cases(job: Job) -> None:
    """Analyse each case that has reached a planned number of clean blocks, or its end.

    Do nothing if the run has no interim analyses, or those of contests (`contest_analyses`).
    """
    if job.run.until not in (Until.DECIDED, Until.SCREENED):
        return
    spec = load_comparison_spec(job)
    due = select_due_cases(job, _load_blocks(job, 1 + len(spec.contenders)))
    if due:
        cells = sum(spec.count_cells(case) for case in list_cases(job))
        claims.store_analyses(job, judge_cases(job, due, spec, cells=cells))


def judge_cases(
    job: Job, due: Mapping[int, CaseBlocks], spec: ComparisonSpec, *, cells: int
) -> list[InterimAnalysis]:
    """Return an analysis of each case that is due; `cells`: the number of tests of the run."""
    _add_build_noise(job, due)
    data = _compare_due(due, spec)
    decisions = decide_cases(
        {case: compared.data for case, compared in data.items()},
        elsewhere=_load_other_p_values(job, due),
        cells=cells,
        screen=job.run.until == Until.SCREENED,
    )
    return [
        _build_analysis(job, case, data[case], decisions[case], spec) for case in sorted(decisions)
    ]


def load_comparison_spec(job: Job) -> ComparisonSpec:
    """Return the metrics of the run's cases and its contenders."""
    variants = job.run.variants.select_related("commit").filter(position__gt=0)
    stored = get_stored_spec(job.run.definition)
    cases = Case.objects.filter(trials__job__run=job.run_id).order_by().distinct()
    return ComparisonSpec(
        primary={
            case: stored.list_case_metrics(parameters)
            for case, parameters in cases.values_list("pk", "parameters")
        },
        contenders={each.position: each.commit.short_sha for each in variants},
    )


def select_due_cases(job: Job, blocks: Mapping[int, CaseBlocks]) -> dict[int, CaseBlocks]:
    """Return the cases that are due for an analysis."""
    analyses = {case: analysis for (_, case), analysis in load_latest_analyses([job.pk]).items()}
    finished = {case for case, analysis in analyses.items() if analysis.decided or analysis.futile}
    return {
        case: each
        for case, each in blocks.items()
        if case not in finished
        and is_analysis_due(
            len(each.clean),
            analyses[case].blocks if case in analyses else 0,
            last=not each.goes_on,
        )
    }


def _load_blocks(job: Job, variants: int) -> dict[int, CaseBlocks]:
    """Return the blocks of each case by id, in time order.

    A block is clean if all its trials count and ran on one host. A retried job may have begun the
    block on another host.
    """
    rows = (
        Trial.objects.filter(job=job)
        .exclude(state=TrialState.UNSUPPORTED)
        .order_by("round", "position")
        .values_list("case_id", "round", "variant__position", "pk", "host", "state", "validity")
    )
    grouped: dict[tuple[int, int], list[BlockTrial]] = defaultdict(list)
    for case, number, position, trial, host, state, validity in rows:
        grouped[case, number].append(BlockTrial(position, trial, host, state, validity))
    blocks: dict[int, CaseBlocks] = defaultdict(lambda: CaseBlocks(clean=[], builds=[]))
    for (case, number), block in grouped.items():
        states = {trial.state for trial in block}
        if TrialState.PLANNED in states:
            blocks[case].goes_on = True
        elif _is_clean(block, variants):
            blocks[case].clean.append({trial.position: trial.trial for trial in block})
            blocks[case].builds.append(number_build(number, job.run.builds))
        elif states & ENDED:
            blocks[case].excluded += 1
        if TrialState.PLANNED not in states:
            blocks[case].add_pairs(
                {trial.position: trial.counts for trial in block if trial.state in ENDED}
            )
    return blocks


def _is_clean(block: Sequence[BlockTrial], variants: int) -> bool:
    together = len(block) == variants and len({trial.host for trial in block}) == 1
    return together and all(trial.counts for trial in block)


def _add_build_noise(job: Job, due: Mapping[int, CaseBlocks]) -> None:
    """Add to each case the noise between builds of the host, as calibrated in this epoch."""
    if job.host is None or not get_stored_spec(job.run.definition).spec.has_build_steps:
        return
    epoch = load_host_changes(job.host).count()
    for key, noise in load_build_noise(due.keys(), [job.host.pk]).items():
        if key.epoch == epoch:
            blocks = due[key.case]
            blocks.build_noise = {**blocks.build_noise, key.metric: noise}


def _compare_due(due: Mapping[int, CaseBlocks], spec: ComparisonSpec) -> dict[int, CaseComparisons]:
    blocks = chain.from_iterable(each.clean for each in due.values())
    trials = list(chain.from_iterable(block.values() for block in blocks))
    values = load_values(trials, {key for case in due for key in spec.primary[case]})
    # Trials without a primary metric, such as those of a script with metrics of its own.
    values |= load_values([trial for trial in trials if trial not in values])
    return {case: compare_case(case, blocks, spec, values) for case, blocks in due.items()}


def _load_other_p_values(job: Job, due: Iterable[int]) -> list[float]:
    """Return the newest p values of the run's cases that are not analysed now."""
    now = {(job.pk, case) for case in due}
    jobs = job.run.jobs.values_list("pk", flat=True)
    return [
        p
        for key, analysis in load_latest_analyses(jobs).items()
        if key not in now
        for p in analysis.p_values
    ]


def list_cases(job: Job) -> list[int]:
    """Return the cases that are or will be measured, once per job."""
    trials = Trial.objects.filter(job__run=job.run_id).exclude(state=TrialState.UNSUPPORTED)
    rows = trials.order_by().values_list("job", "case").distinct()
    return [case for _, case in rows]


def _build_analysis(
    job: Job, case: int, compared: CaseComparisons, decision: Decision, spec: ComparisonSpec
) -> InterimAnalysis:
    needed = decision.needed
    return InterimAnalysis(
        job=job,
        case_id=case,
        blocks=compared.data.blocks,
        excluded=compared.data.excluded,
        decided=decision.decided,
        futile=decision.futile,
        verdict=decision.verdict,
        needed_blocks=needed.probable if needed else None,
        needed_least=needed.least if needed else None,
        needed_most=needed.most if needed else None,
        p_values=list(compared.data.p_values),
        message=describe_decision(compared, decision, spec),
    )
