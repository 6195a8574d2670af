"""The table of trials of a run, with the values of the metrics that decide its verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

from cli.pitwall.units import format_value
from orchestrator.loadtools.metrics import Metric, describe_latency_model
from orchestrator.loadtools.model import Model
from orchestrator.measurements.run_numbers import load_metric_loops, load_primary_values
from orchestrator.runs.models import Run, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricHead:
    """A column of a metric. `note` describes the load model of a latency, `loop` names it."""

    title: str
    note: str
    loop: str

    @property
    def text(self) -> str:
        return f"{self.title} ({self.loop})" if self.loop else self.title


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsTable:
    """`rows`: each trial with its values as texts, in the order of `heads`."""

    heads: tuple[MetricHead, ...]
    rows: tuple[tuple[Trial, tuple[str, ...]], ...]


def build_trials_table(run: Run, trials: Sequence[Trial]) -> TrialsTable:
    metrics, values = load_primary_values(run, {trial.pk: trial.case_id for trial in trials})
    return TrialsTable(
        heads=build_metric_heads(run, metrics),
        rows=tuple(
            (
                trial,
                tuple(
                    format_value(values.get(trial.pk, {}).get(metric.key), metric.unit)
                    for metric in metrics
                ),
            )
            for trial in trials
        ),
    )


def build_metric_heads(run: Run, metrics: Sequence[Metric]) -> tuple[MetricHead, ...]:
    """Return the columns of the metrics that decide the verdict of a run."""
    loops = load_metric_loops(run)
    return tuple(_build_head(metric, sorted(loops[metric.key])) for metric in metrics)


def _build_head(metric: Metric, loops: Sequence[Model]) -> MetricHead:
    """`loops`: those of the cases that the metric decides."""
    notes = [note for loop in loops if (note := describe_latency_model(metric.key, loop))]
    return MetricHead(
        title=metric.title,
        note="; ".join(notes),
        loop=" or ".join(note.partition(":")[0] for note in notes),
    )
