"""Counts the blocks that are excluded from a comparison, and those with a suspect trial."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.comparisons.points import CaseOnHost
from orchestrator.measurements.comparability import hash_block
from orchestrator.runs.models import Run, Trial, Until, Variant
from orchestrator.runs.states import TrialState, Validity


class SharedRun(NamedTuple):
    """A run that measures both commits; `digest` and `version` are those of its definition.

    `interim`: interim analyses could stop its cases early.
    """

    definition: UUID
    digest: str
    version: int
    variants: tuple[int, ...]
    interim: bool


class FlaggedTrial(NamedTuple):
    """A trial that failed, is invalid or suspect; `excluded`: its block does not count."""

    commit: int
    place: CaseOnHost
    block: int
    excluded: bool
    version: int
    reasons: Sequence[str]


FlaggedTrials = Mapping[tuple[int, CaseOnHost], Sequence[FlaggedTrial]]


@dataclass(slots=True, kw_only=True)
class Exclusions:
    """Of one case: the numbers of excluded blocks and of counted blocks with a suspect trial.

    `reasons` are those of the trials in both.
    """

    excluded: int = 0
    suspect: int = 0
    reasons: list[Sequence[str]] = field(default_factory=list)


def load_shared_runs(
    benchmark: Benchmark, baseline: Commit, contender: Commit, run: Run | None = None
) -> list[SharedRun]:
    """The runs of a benchmark that measure both commits, the newest definition first."""
    variants = Variant.objects.filter(
        commit__in=[baseline, contender], run__definition__benchmark=benchmark
    )
    if run is not None:
        variants = variants.filter(run=run)
    rows = variants.values_list(
        "run_id", "run__definition_id", "run__definition__digest", "run__definition__version",
        "run__until", "pk", "commit_id",
    )  # fmt: skip
    grouped: dict[tuple[UUID, UUID, str, int, str], dict[int, int]] = defaultdict(dict)
    for run_id, definition, digest, version, until, variant, commit in rows:
        grouped[run_id, definition, digest, version, until][commit] = variant
    commits = len({baseline.pk, contender.pk})
    shared = [
        SharedRun(definition, digest, version, tuple(sides.values()), until != Until.ROUNDS)
        for (_, definition, digest, version, until), sides in grouped.items()
        if len(sides) == commits
    ]
    return sorted(shared, key=lambda each: -each.version)


def load_flagged_trials(runs: Iterable[SharedRun]) -> list[FlaggedTrial]:
    """All trials of these runs that failed, are invalid or suspect."""
    versions = {variant: run.version for run in runs for variant in run.variants}
    if not versions:
        return []
    rows = (
        Trial.objects.filter(variant__in=list(versions))
        .filter(Q(state=TrialState.FAILED) | Q(validity__in=[Validity.SUSPECT, Validity.INVALID]))
        .order_by()
        .values_list(
            "variant_id", "variant__commit_id", "host_id", "job__host_id", "case_id", "job_id",
            "round", "state", "validity", "reasons",
        )
    )  # fmt: skip
    return [
        FlaggedTrial(
            commit=commit,
            place=CaseOnHost(str(host or job_host), case),
            block=hash_block(job, number),
            excluded=state == TrialState.FAILED or validity == Validity.INVALID,
            version=versions[variant],
            reasons=reasons,
        )
        for variant, commit, host, job_host, case, job, number, state, validity, reasons in rows
    ]


def group_flagged_trials(trials: Iterable[FlaggedTrial]) -> FlaggedTrials:
    """By commit, and by case and host."""
    grouped: dict[tuple[int, CaseOnHost], list[FlaggedTrial]] = defaultdict(list)
    for trial in trials:
        grouped[trial.commit, trial.place].append(trial)
    return grouped


def count_exclusions(
    case: PairedCase, commits: tuple[int, int], flagged: FlaggedTrials, version: int | None
) -> Exclusions:
    """The exclusions of a paired case.

    `version`: if points of other versions of the definition do not count, neither do its trials.
    """
    if not flagged:
        return Exclusions()
    sides = zip(commits, (case.baseline, case.contender), strict=True)
    keys = dict.fromkeys((commit, group.place) for commit, side in sides for group in side)
    trials = [trial for key in keys for trial in flagged.get(key, ())]
    if case.excluded_trials:
        trials = [trial for trial in trials if trial.version == version]
    return sum_exclusions(trials, case.blocks[0] if trials and case.paired else ())


def sum_exclusions(trials: Sequence[FlaggedTrial], counted: Collection[int]) -> Exclusions:
    """One failed or invalid trial excludes its block. `counted` are the compared blocks."""
    excluded = {trial.block for trial in trials if trial.excluded}
    suspect = {trial.block for trial in trials if not trial.excluded and trial.block in counted}
    return Exclusions(
        excluded=len(excluded - set(counted)),
        suspect=len(suspect),
        reasons=[
            trial.reasons for trial in trials if trial.block in excluded or trial.block in suspect
        ],
    )


def find_excluded_cases(
    trials: Iterable[FlaggedTrial], cases: Iterable[PairedCase]
) -> dict[CaseOnHost, list[FlaggedTrial]]:
    """The failed and invalid trials of cases that no block of both sides measured."""
    paired = {group.place for case in cases for group in (*case.baseline, *case.contender)}
    grouped: dict[CaseOnHost, list[FlaggedTrial]] = defaultdict(list)
    for trial in trials:
        if trial.excluded and trial.place not in paired:
            grouped[trial.place].append(trial)
    return grouped
