"""Results of Bencher: the output of `bencher perf`, and its Metric Format (BMF)."""

from collections.abc import Iterator
from typing import Any

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
#: Words for units, as Bencher shows them.
_UNITS = {
    "nanoseconds (ns)": "ns",
    "operations / second (ops/s)": "ops/s",
    "seconds (s)": "s",
    "bytes (B)": "B",
}
_FIGURES = {"value": "", "lower_value": "lower", "upper_value": "upper"}


def read(content: bytes) -> Iterator[Row]:
    """Yield each value, and its bounds as statistics `lower` and `upper`.

    BMF (`{benchmark: {measure: {value, lower_value, upper_value}}}`) names no commit, and the
    output of `bencher perf` the hash of each version.
    """
    whole = parse_document(content)
    if is_perf(whole.value):
        for series in whole["results"].items():
            yield from _iterate_series(series)
        return
    for benchmark, measures in whole.fields():
        for measure, metric in measures.fields():
            metric["value"].number()
            yield from _iterate_rows(
                metric, measure, _MEASURES.get(measure, ("", "")), {"benchmark": benchmark}
            )


def is_perf(value: Any) -> bool:
    """Return whether a document is the output of `bencher perf`."""
    return isinstance(value, dict) and isinstance(value.get("results"), list)


def _iterate_series(series: Node) -> Iterator[Row]:
    measure = series["measure"]
    slug = measure["slug"].text()
    unit = measure.get("units")
    known = _MEASURES.get(slug, ("", ""))
    kind = (_UNITS.get(unit.text(), unit.text()) if unit else known[0], known[1])
    fields = {
        "environment": series["testbed"]["name"].text(),
        "branch": series["branch"]["name"].text(),
    }
    parameters = {"benchmark": series["benchmark"]["name"].text()}
    for entry in series["metrics"].items():
        sha = entry["version"].get("hash")
        more = {
            **fields,
            "measured_at": entry["start_time"].instant(),
            "commit": "" if sha is None else sha.text(),
        }
        entry["metric"]["value"].number()
        yield from _iterate_rows(entry["metric"], slug, kind, parameters, more)


def _iterate_rows(
    metric: Node,
    measure: str,
    kind: tuple[str, Better],
    parameters: dict[str, str],
    more: dict[str, Any] | None = None,
) -> Iterator[Row]:
    unit, better = kind
    for name, statistic in _FIGURES.items():
        figure = metric.get(name)
        if figure is not None:
            yield build_row(
                measure,
                figure.figure(),
                unit,
                parameters=parameters,
                better=better,
                statistic=statistic,
                **(more or {}),
            )
