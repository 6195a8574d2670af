"""Bencher Metric Format: `{benchmark: {measure: {value, lower_value, upper_value}}}`."""

from collections.abc import Iterator

from orchestrator.importers.document import Node, parse_document
from orchestrator.importers.rows import Better, Row, build_row

#: Built-in measures of Bencher → (unit, better).
_MEASURES: dict[str, tuple[str, Better]] = {
    "latency": ("ns", "lower"),
    "throughput": ("ops/s", "higher"),
    "build-time": ("s", "lower"),
    "file-size": ("B", "lower"),
    "json": ("", ""),
}
_FIGURES = {"value": "", "lower_value": "lower", "upper_value": "upper"}


def read(content: bytes) -> Iterator[Row]:
    """Yield each measure of each benchmark, and its bounds as statistics `lower` and `upper`."""
    for benchmark, measures in parse_document(content).fields():
        for measure, metric in measures.fields():
            metric["value"].number()
            yield from _iterate_rows(benchmark, measure, metric)


def _iterate_rows(benchmark: str, measure: str, metric: Node) -> Iterator[Row]:
    unit, better = _MEASURES.get(measure, ("", ""))
    for name, statistic in _FIGURES.items():
        figure = metric.get(name)
        if figure is not None:
            yield build_row(
                measure,
                figure.figure(),
                unit,
                parameters={"benchmark": benchmark},
                better=better,
                statistic=statistic,
            )
