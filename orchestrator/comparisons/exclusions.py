"""What was measured and does not count, or only with a doubt: read from the few trials it is of."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.blocks import Cell
from orchestrator.comparisons.points import Place
from orchestrator.measurements.comparability import block_of
from orchestrator.runs.models import Run, Trial, Until, Variant
from orchestrator.runs.states import TrialState, Validity


class RunOfBoth(NamedTuple):
    """A run that measures both commits; `version` is that of its definition.

    `looked`: its cases were looked at on the way, and ended when they were decided.
    """

    definition: UUID
    version: int
    variants: tuple[int, ...]
    looked: bool


class Doubtful(NamedTuple):
    """A trial that failed, is invalid or suspect."""

    commit: int
    place: Place
    block: int
    void: bool
    version: int
    reasons: Sequence[str]


@dataclass(slots=True, kw_only=True)
class Exclusions:
    """Of one cell: blocks left out, blocks that count though suspect, and the reasons for both."""

    excluded: int = 0
    suspect: int = 0
    reasons: list[Sequence[str]] = field(default_factory=list)


def runs_of(
    benchmark: Benchmark, baseline: Commit, contender: Commit, run: Run | None = None
) -> list[RunOfBoth]:
    """The runs of a benchmark that measure both commits, the newest definition first."""
    variants = Variant.objects.filter(
        commit__in=[baseline, contender], run__definition__benchmark=benchmark
    )
    if run is not None:
        variants = variants.filter(run=run)
    rows = variants.values_list(
        "run_id", "run__definition_id", "run__definition__version", "run__until", "pk", "commit_id"
    )
    grouped: dict[tuple[UUID, UUID, int, str], dict[int, int]] = defaultdict(dict)
    for of_run, definition, version, until, variant, commit in rows:
        grouped[of_run, definition, version, until][commit] = variant
    wanted = len({baseline.pk, contender.pk})
    found = [
        RunOfBoth(definition, version, tuple(sides.values()), until != Until.ROUNDS)
        for (_, definition, version, until), sides in grouped.items()
        if len(sides) == wanted
    ]
    return sorted(found, key=lambda each: -each.version)


def doubtful_of(runs: Iterable[RunOfBoth]) -> list[Doubtful]:
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
        Doubtful(
            commit=commit,
            place=Place(str(host or of_job), case),
            block=block_of(job, number),
            void=state == TrialState.FAILED or validity == Validity.INVALID,
            version=versions[variant],
            reasons=reasons,
        )
        for variant, commit, host, of_job, case, job, number, state, validity, reasons in rows
    ]


def by_place(trials: Iterable[Doubtful]) -> dict[tuple[int, Place], list[Doubtful]]:
    """By commit and place."""
    found: dict[tuple[int, Place], list[Doubtful]] = defaultdict(list)
    for each in trials:
        found[each.commit, each.place].append(each)
    return found


def count_exclusions(
    cell: Cell,
    commits: tuple[int, int],
    doubtful: dict[tuple[int, Place], list[Doubtful]],
    newest: int | None,
) -> Exclusions:
    """What does not count of a paired cell. `newest`: the version of the definition that counts
    where points of others were left out."""
    sides = zip(commits, (cell.baseline, cell.contender), strict=True)
    if not doubtful:
        return Exclusions()
    keys = dict.fromkeys((commit, each.place) for commit, side in sides for each in side)
    trials = [trial for key in keys for trial in doubtful.get(key, ())]
    if cell.left_out:
        trials = [trial for trial in trials if trial.version == newest]
    return summed(trials, cell.blocks[0] if trials and cell.paired else ())


def summed(trials: Sequence[Doubtful], counted: Collection[int]) -> Exclusions:
    """A block is void for one of its trials; of those `counted`, some are suspect."""
    void = {trial.block for trial in trials if trial.void}
    suspect = {trial.block for trial in trials if not trial.void and trial.block in counted}
    return Exclusions(
        excluded=len(void - set(counted)),
        suspect=len(suspect),
        reasons=[t.reasons for t in trials if t.block in void or t.block in suspect],
    )


def only_void(trials: Iterable[Doubtful], cells: Iterable[Cell]) -> dict[Place, list[Doubtful]]:
    """Void trials at places of which no cell is: there nothing was measured by both sides."""
    known = {each.place for cell in cells for each in (*cell.baseline, *cell.contender)}
    found: dict[Place, list[Doubtful]] = defaultdict(list)
    for trial in trials:
        if trial.void and trial.place not in known:
            found[trial.place].append(trial)
    return found
