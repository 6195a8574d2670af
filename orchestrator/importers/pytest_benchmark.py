"""The output of pytest-benchmark's `--benchmark-json`."""

from collections.abc import Iterator
from typing import Any

from orchestrator.importers.document import Node, parse_document
from orchestrator.importers.rows import Better, Row, Scalar, build_row

#: Fields of `stats` that are not times → (metric, unit, better).
_OTHERS: dict[str, tuple[str, str, Better]] = {
    "ops": ("ops", "1/s", "higher"),
    "rounds": ("rounds", "count", ""),
    "iterations": ("iterations", "count", ""),
    "iqr_outliers": ("iqr_outliers", "count", ""),
    "stddev_outliers": ("stddev_outliers", "count", ""),
}


def read(content: bytes) -> Iterator[Row]:
    """Yield each number of each benchmark's statistics, times in seconds.

    `outliers` is left out: it is a text of two numbers that have separate fields.
    """
    whole = parse_document(content)
    fields = _read_common_fields(whole)
    for benchmark in whole["benchmarks"].items():
        group = benchmark.get("group")
        more = {
            **fields,
            "suite": "" if group is None else group.text(),
            "parameters": _read_parameters(benchmark),
        }
        for name, node in benchmark["stats"].fields():
            if name == "data":
                for number, sample in enumerate(node.items(), 1):
                    yield _build_benchmark_row("time", sample, f"run {number}", more)
            elif name != "outliers":
                yield _build_benchmark_row(name, node, name, more)


def _build_benchmark_row(name: str, node: Node, statistic: str, fields: dict[str, Any]) -> Row:
    if name in _OTHERS:
        metric, unit, better = _OTHERS[name]
        return build_row(metric, node.figure(), unit, **fields, better=better)
    return build_row("time", node.figure(), "s", **fields, better="lower", statistic=statistic)


def _read_parameters(benchmark: Node) -> dict[str, Scalar]:
    params = benchmark.get("params")
    given = {} if params is None else dict(params.fields())
    return {
        "benchmark": benchmark["fullname"].text(),
        **{name: _read_scalar(value) for name, value in given.items()},
    }


def _read_scalar(node: Node) -> Scalar:
    return node.value if isinstance(node.value, str | int | float | bool) else str(node.value)


def _read_common_fields(whole: Node) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    machine, commit, moment = (whole.get(n) for n in ("machine_info", "commit_info", "datetime"))
    if machine is not None and (name := machine.get("node")):
        fields["environment"] = name.text()
    if commit is not None and (sha := commit.get("id")):
        fields["commit"] = sha.text()
    if moment is not None:
        fields["measured_at"] = moment.instant()
    return fields
