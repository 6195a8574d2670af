"""Counts the blocks that are excluded from a comparison, and those with a suspect trial."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.comparisons.points import CaseOnHost
from orchestrator.loadtools.trial_outcomes import classify_failure, classify_invalid
from orchestrator.measurements.comparability import hash_block
from orchestrator.measurements.readings import load_values
from orchestrator.measurements.validity_issues import parse_code
from orchestrator.runs.models import Run, Trial, Variant
from orchestrator.runs.states import COUNTED_VALIDITIES, TrialState, Validity
from orchestrator.stats.block_outcomes import BlockOutcomes, Outcome, judge_outcomes
from orchestrator.stats.order_effect import find_order
from orchestrator.stats.saturated_blocks import SaturatedBlock


class SharedRun(NamedTuple):
    """A run that measures both commits; `digest` and `version` are those of its definition."""

    definition: UUID
    digest: str
    version: int
    variants: tuple[int, ...]


class FlaggedTrial(NamedTuple):
    """A trial that failed, is invalid or suspect, or that counts next to such trials.

    `reasons`: why it is flagged; empty if it is valid. `order`: its place in the order of the job,
    from 1. `values`: by metric, only of blocks with a saturated trial.
    """

    commit: int
    place: CaseOnHost
    block: int
    outcome: Outcome
    version: int
    reasons: Sequence[str]
    order: int = 0
    values: Mapping[str, float] = MappingProxyType({})

    @property
    def excluded(self) -> bool:
        """Return whether its block does not count."""
        return self.outcome is not Outcome.COUNTS


#: The outcomes of trials that have values.
_WITH_VALUES = frozenset({Outcome.COUNTS, Outcome.SATURATED})

FlaggedTrials = Mapping[tuple[int, CaseOnHost], Sequence[FlaggedTrial]]


@dataclass(slots=True, kw_only=True)
class Exclusions:
    """Of one case: the numbers of excluded blocks and of counted blocks with a suspect trial.

    `suspect_blocks`: the latter blocks; empty if the sides share none, where `suspect` counts
    trials. `reasons` are those of the trials in both. `outcomes`: how the trials of both sides
    ended.
    `saturated`: the trials of excluded blocks in which a trial is saturated, and none failed
    otherwise.
    """

    excluded: int = 0
    suspect: int = 0
    suspect_blocks: frozenset[int] = frozenset()
    reasons: list[Sequence[str]] = field(default_factory=list)
    outcomes: BlockOutcomes = field(default_factory=BlockOutcomes)
    saturated: list[tuple[FlaggedTrial, FlaggedTrial]] = field(default_factory=list)

    def list_saturated_blocks(self, metric: str) -> list[SaturatedBlock]:
        """Return the values of a metric in the saturated blocks in which both sides have it."""
        return [
            SaturatedBlock(
                baseline=before.values[metric],
                contender=after.values[metric],
                order=find_order(before.order, after.order),
                saturated=(
                    before.outcome is Outcome.SATURATED,
                    after.outcome is Outcome.SATURATED,
                ),
            )
            for before, after in self.saturated
            if metric in before.values and metric in after.values
        ]


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
        "pk", "commit_id",
    )  # fmt: skip
    grouped: dict[tuple[UUID, UUID, str, int], dict[int, int]] = defaultdict(dict)
    for run_id, definition, digest, version, variant, commit in rows:
        grouped[run_id, definition, digest, version][commit] = variant
    commits = len({baseline.pk, contender.pk})
    shared = [
        SharedRun(definition, digest, version, tuple(sides.values()))
        for (_, definition, digest, version), sides in grouped.items()
        if len(sides) == commits
    ]
    return sorted(shared, key=lambda each: -each.version)


def load_flagged_trials(runs: Iterable[SharedRun]) -> list[FlaggedTrial]:
    """Return the trials of these runs that failed, are invalid or suspect.

    With an excluded trial, the trials of its case that count are returned as well.
    """
    versions = {variant: run.version for run in runs for variant in run.variants}
    if not versions:
        return []
    trials = Trial.objects.filter(variant__in=list(versions))
    flagged = Q(state=TrialState.FAILED) | Q(validity__in=[Validity.SUSPECT, Validity.INVALID])
    found = _read_trials(trials.filter(flagged), versions)
    cases = {trial.place.case for trial in found.values() if trial.excluded}
    if cases:
        valid = trials.filter(case__in=cases, state=TrialState.MEASURED, validity=Validity.VALID)
        found |= _read_trials(valid, versions)
    return _add_values(found)


def _add_values(trials: Mapping[UUID, FlaggedTrial]) -> list[FlaggedTrial]:
    """Return the trials with the values of blocks that have a saturated trial."""
    blocks = {
        (trial.place.case, trial.block)
        for trial in trials.values()
        if trial.outcome is Outcome.SATURATED
    }
    measured = [
        pk
        for pk, trial in trials.items()
        if (trial.place.case, trial.block) in blocks and trial.outcome in _WITH_VALUES
    ]
    values = load_values(measured) if measured else {}
    return [
        trial._replace(values=values[pk]) if pk in values else trial for pk, trial in trials.items()
    ]


def _read_trials(trials: QuerySet[Trial], versions: Mapping[int, int]) -> dict[UUID, FlaggedTrial]:
    """`versions`: variant → version of the definition."""
    rows = trials.order_by().values_list(
        "pk", "variant_id", "variant__commit_id", "host_id", "job__host_id", "case_id", "job_id",
        "round", "position", "state", "validity", "reasons",
    )  # fmt: skip
    return {
        pk: FlaggedTrial(
            commit=commit,
            place=CaseOnHost(str(host or job_host), case),
            block=hash_block(job, number),
            outcome=classify_trial(state, validity, reasons),
            version=versions[variant],
            reasons=reasons,
            order=position + 1,
        )
        for pk, variant, commit, host, job_host, case, job, number, position, state, validity,
            reasons in rows
    }  # fmt: skip


def classify_trial(state: str, validity: str, reasons: Sequence[str]) -> Outcome:
    """Return how an ended trial counts; `reasons` are those of its row."""
    codes = [parse_code(reason) for reason in reasons]
    if state == TrialState.FAILED:
        return classify_failure(codes[0] if codes else "")
    return Outcome.COUNTS if validity in COUNTED_VALIDITIES else classify_invalid(codes)


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
    wanted = version if case.excluded_trials else None
    before, after = (
        [
            trial
            for place in dict.fromkeys(group.place for group in side)
            for trial in flagged.get((commit, place), ())
            if wanted is None or trial.version == wanted
        ]
        for commit, side in zip(commits, (case.baseline, case.contender), strict=True)
    )
    return sum_exclusions(before, after, case.blocks[0] if case.paired else ())


def sum_exclusions(
    baseline: Sequence[FlaggedTrial], contender: Sequence[FlaggedTrial], counted: Collection[int]
) -> Exclusions:
    """One failed or invalid trial excludes its block. `counted` are the compared blocks."""
    trials = baseline if baseline == contender else [*baseline, *contender]
    excluded = {trial.block for trial in trials if trial.excluded}
    suspect = {trial.block for trial in trials if _is_suspect(trial) and trial.block in counted}
    before = {trial.block: trial for trial in baseline}
    after = {trial.block: trial for trial in contender}
    pairs = {block: (before[block], after[block]) for block in before.keys() & after.keys()}
    return Exclusions(
        excluded=len(excluded - set(counted)),
        suspect=len(suspect),
        suspect_blocks=frozenset(suspect),
        reasons=[
            trial.reasons for trial in trials if trial.block in excluded or trial.block in suspect
        ],
        outcomes=judge_outcomes(
            [(first.outcome, second.outcome) for first, second in pairs.values()]
        ),
        saturated=[
            pair for block, pair in pairs.items() if block not in counted and _is_saturated(pair)
        ],
    )


def _is_saturated(pair: tuple[FlaggedTrial, FlaggedTrial]) -> bool:
    """Return whether a trial of a block is saturated, and both have values."""
    outcomes = {trial.outcome for trial in pair}
    return Outcome.SATURATED in outcomes and outcomes <= _WITH_VALUES


def _is_suspect(trial: FlaggedTrial) -> bool:
    return bool(trial.reasons) and not trial.excluded


def find_excluded_cases(
    trials: Iterable[FlaggedTrial], cases: Iterable[PairedCase]
) -> set[CaseOnHost]:
    """Return where trials failed or are invalid, and no block of both sides was measured."""
    paired = {group.place for case in cases for group in (*case.baseline, *case.contender)}
    return {trial.place for trial in trials if trial.excluded} - paired
