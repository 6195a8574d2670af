"""The primary metrics of a run: of each trial, of each of its cases, and as one table."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from uuid import UUID

from orchestrator.benchmarks.models import Case
from orchestrator.benchmarks.selectors import StoredSpec, load_stored_spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.loadtools.model import Model
from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, TrialState

#: A run with more trials shows its values only in reports and histories.
MOST_SUMMARISED = 2_000


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
    """The usable trials of some cases of a run, and the metrics that decide its verdict.

    A trial has only values of metrics that decide its case.
    """

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
            variant: tuple(
                _compute_median(metric.key, [trial.values for trial in mine])
                for metric in self.metrics
            )
            for variant, mine in by_variant.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """The median of each metric of a case on a host; None if it was not reported.

    They are of the `usable` trials; without any, of the disturbed ones.
    """

    case: str
    host: str
    measured: int
    usable: int
    medians: tuple[tuple[Metric, float | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The result of a run of one commit: a row for each case on each host."""

    metrics: tuple[Metric, ...]
    rows: tuple[CaseSummary, ...]


def load_run_numbers(run: Run, cases: Collection[int]) -> RunNumbers:
    """Return the usable trials of these cases, with two queries for any number of them."""
    usable = Trial.objects.filter(
        job__run=run,
        case__in=list(cases),
        state=TrialState.MEASURED,
        validity__in=COUNTED_VALIDITIES,
    )
    rows = list(usable.values_list("pk", "case_id", "job_id", "variant_id", "round"))
    metrics, values = load_primary_values(run, {row[0]: row[1] for row in rows})
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


def load_metric_loops(run: Run) -> Mapping[str, frozenset[Model]]:
    """Return the metrics that decide the verdict of some case, with the loops of these cases.

    Empty if the definition of the run is unreadable.
    """
    spec = _load_spec(run)
    return spec.primary_metrics if spec else {}


def load_primary_values(
    run: Run, trials: Mapping[UUID, int]
) -> tuple[tuple[Metric, ...], dict[UUID, dict[str, float]]]:
    """Return the primary metrics of a run, and the values that decide the cases of these trials.

    `trials`: trial → case.
    """
    keys = load_metric_loops(run)
    known = {metric.key: metric for metric in find_metrics(keys)}
    values = load_values(trials, known)
    own = _load_case_metrics(run, {trials[trial] for trial in values})
    return tuple(known[key] for key in keys if key in known), {
        trial: {key: value for key, value in each.items() if key in own[trials[trial]]}
        for trial, each in values.items()
    }


def select_primary_values(trial: Trial, values: Mapping[str, float]) -> dict[str, float]:
    """Return those of the trial's `values` that decide its case."""
    spec = _load_spec(trial.job.run)
    own = spec.list_case_metrics(trial.case.parameters) if spec else ()
    return {key: values[key] for key in own if key in values}


def _load_case_metrics(run: Run, cases: Collection[int]) -> dict[int, tuple[str, ...]]:
    spec = _load_spec(run)
    rows = Case.objects.filter(pk__in=cases).values_list("pk", "parameters")
    return {pk: spec.list_case_metrics(parameters) if spec else () for pk, parameters in rows}


def _load_spec(run: Run) -> StoredSpec | None:
    try:
        return load_stored_spec(run.definition.pk, run.definition.digest)
    except InvalidRequestError:
        return None


def load_run_summary(run: Run) -> RunSummary | None:
    """Return the summary so far; None before the first trial, and for a run of many trials."""
    trials = list(
        Trial.objects.filter(job__run=run, state=TrialState.MEASURED)
        .order_by("job__host__name", "case__label", "case")
        .values_list("job__host__name", "case__label", "case", "pk", "validity")[
            : MOST_SUMMARISED + 1
        ]
    )
    if not 0 < len(trials) <= MOST_SUMMARISED:
        return None
    metrics, values = load_primary_values(run, {pk: key for _, _, key, pk, _ in trials})
    groups: dict[tuple[str, str], list[tuple[UUID, str]]] = defaultdict(list)
    for host, case, _, pk, validity in trials:
        groups[host or "", case].append((pk, validity))
    rows = (_summarise(host, case, each, metrics, values) for (host, case), each in groups.items())
    return RunSummary(metrics=metrics, rows=tuple(rows))


def _summarise(
    host: str,
    case: str,
    trials: Sequence[tuple[UUID, str]],
    metrics: Sequence[Metric],
    values: Mapping[UUID, Mapping[str, float]],
) -> CaseSummary:
    usable = [pk for pk, validity in trials if validity in COUNTED_VALIDITIES]
    chosen = [values.get(pk, {}) for pk in usable or [pk for pk, _ in trials]]
    return CaseSummary(
        case=case,
        host=host,
        measured=len(trials),
        usable=len(usable),
        medians=tuple((metric, _compute_median(metric.key, chosen)) for metric in metrics),
    )


def _compute_median(key: str, trials: Iterable[Mapping[str, float]]) -> float | None:
    values = [each[key] for each in trials if key in each]
    return median(values) if values else None
