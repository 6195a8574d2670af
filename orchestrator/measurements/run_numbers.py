"""The primary metrics of a run: of each trial, and of each of its cases."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from uuid import UUID

from orchestrator.benchmarks.selectors import load_stored_spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class UsableTrial:
    """A trial that counts: valid or suspect. `values` are its readings by metric."""

    id: UUID
    case: int
    job: UUID
    variant: int
    round: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseNumbers:
    """Numbers of some trials of a case, such as those of one variant.

    `usable`: the number of usable trials. `blocks`: how many of them are in a usable block: it has
    a usable trial of the baseline and of a contender, if the run has contenders. `medians`: of each
    variant, in the order of `metrics`; None for a metric that no trial measured.
    """

    usable: int
    blocks: int
    medians: Mapping[int, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNumbers:
    """The usable trials of some cases of a run, and the metrics that decide its verdict."""

    metrics: tuple[Metric, ...]
    trials: tuple[UsableTrial, ...]
    contenders: frozenset[int]

    def group(
        self, column: Callable[[UsableTrial], Hashable]
    ) -> dict[tuple[int, Hashable], CaseNumbers]:
        """Return the numbers of each (case, column)."""
        blocks = self._find_usable_blocks()
        groups: dict[tuple[int, Hashable], list[UsableTrial]] = defaultdict(list)
        for trial in self.trials:
            groups[trial.case, column(trial)].append(trial)
        return {
            key: CaseNumbers(
                usable=len(trials),
                blocks=sum(trial.id in blocks for trial in trials),
                medians=self._compute_medians(trials),
            )
            for key, trials in groups.items()
        }

    def _find_usable_blocks(self) -> set[UUID]:
        """Return the trials whose block is usable."""
        if not self.contenders:
            return {trial.id for trial in self.trials}
        blocks: dict[Hashable, list[UsableTrial]] = defaultdict(list)
        for trial in self.trials:
            blocks[trial.job, trial.case, trial.round].append(trial)
        usable: set[UUID] = set()
        for block in blocks.values():
            is_contender = {trial.variant in self.contenders for trial in block}
            if len(is_contender) == 2:
                usable |= {trial.id for trial in block}
        return usable

    def _compute_medians(
        self, trials: Iterable[UsableTrial]
    ) -> dict[int, tuple[float | None, ...]]:
        by_variant: dict[int, list[UsableTrial]] = defaultdict(list)
        for trial in trials:
            by_variant[trial.variant].append(trial)
        return {
            variant: tuple(_compute_median(metric.key, mine) for metric in self.metrics)
            for variant, mine in by_variant.items()
        }


def load_run_numbers(run: Run, cases: Collection[int]) -> RunNumbers:
    """Return the usable trials of these cases, with two queries for any number of them."""
    metrics = load_primary_metrics(run)
    usable = Trial.objects.filter(
        job__run=run,
        case__in=list(cases),
        state=TrialState.MEASURED,
        validity__in=COUNTED_VALIDITIES,
    )
    rows = list(usable.values_list("pk", "case_id", "job_id", "variant_id", "round"))
    values = load_values([row[0] for row in rows], {metric.key for metric in metrics})
    return RunNumbers(
        metrics=metrics,
        contenders=frozenset(each.pk for each in list(run.variants.all())[1:]),
        trials=tuple(
            UsableTrial(
                id=pk, case=case, job=job, variant=variant, round=number, values=values.get(pk, {})
            )
            for pk, case, job, variant, number in rows
        ),
    )


def load_primary_metrics(run: Run) -> tuple[Metric, ...]:
    """Return the metrics that decide the verdict of a run; none if its definition is unreadable."""
    definition = run.definition
    try:
        keys = load_stored_spec(definition.pk, definition.digest).primary_metrics
    except InvalidRequestError:
        return ()
    known = {metric.key: metric for metric in find_metrics(keys)}
    return tuple(known[key] for key in keys if key in known)


def load_primary_values(
    run: Run, trials: Iterable[UUID]
) -> tuple[tuple[Metric, ...], dict[UUID, dict[str, float]]]:
    """Return the primary metrics of a run, and their values of these trials."""
    metrics = load_primary_metrics(run)
    return metrics, load_values(trials, {metric.key for metric in metrics})


def _compute_median(key: str, trials: Sequence[UsableTrial]) -> float | None:
    values = [trial.values[key] for trial in trials if key in trial.values]
    return median(values) if values else None
