"""The table of trials of a run, with the values of the metrics that decide its verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

from cli.pitwall.units import format_value
from orchestrator.loadtools.metrics import PRIMARY, Metric, describe_latency_model
from orchestrator.measurements.run_numbers import load_primary_values
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
    metrics, values = load_primary_values(run, [trial.pk for trial in trials])
    return TrialsTable(
        heads=build_metric_heads(metrics),
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


def build_metric_heads(metrics: Sequence[Metric]) -> tuple[MetricHead, ...]:
    """Return the columns of the metrics that decide the verdict of a run."""
    is_open = tuple(metric.key for metric in metrics) == PRIMARY["open"]
    return tuple(_build_head(metric, is_open=is_open) for metric in metrics)


def _build_head(metric: Metric, *, is_open: bool) -> MetricHead:
    note = describe_latency_model(metric.key, "open" if is_open else "closed") or ""
    return MetricHead(title=metric.title, note=note, loop=note.partition(":")[0])
