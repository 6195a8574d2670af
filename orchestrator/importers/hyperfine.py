"""The output of hyperfine's `--export-json`."""

from collections.abc import Iterator
from typing import Any

from orchestrator.importers.document import Node, parse_document
from orchestrator.importers.rows import Better, Row, Scalar, build_row

#: Field → (metric, statistic).
_FIGURES = {
    "mean": ("time", "mean"),
    "stddev": ("time", "sd"),
    "median": ("time", "median"),
    "min": ("time", "min"),
    "max": ("time", "max"),
    "user": ("user time", "mean"),
    "system": ("system time", "mean"),
}
#: List → (metric, unit, better); one value per run.
_RUNS: dict[str, tuple[str, str, Better]] = {
    "times": ("time", "s", "lower"),
    "memory_usage_byte": ("memory", "B", "lower"),
    "exit_codes": ("exit code", "", ""),
}


def read(content: bytes) -> Iterator[Row]:
    """Yield the summary and runs of each command; command and parameters are the case."""
    for result in parse_document(content)["results"].items():
        fields: dict[str, Any] = {"parameters": _read_parameters(result)}
        for name, (metric, statistic) in _FIGURES.items():
            if name in result.value:
                figure = Node(result.value[name], f"{result.path}.{name}").figure()
                yield build_row(metric, figure, "s", **fields, better="lower", statistic=statistic)
        for name, (metric, unit, better) in _RUNS.items():
            runs = result.get(name)
            for number, run in enumerate([] if runs is None else runs.items(), 1):
                yield build_row(
                    metric, run.figure(), unit, **fields, better=better, statistic=f"run {number}"
                )


def _read_parameters(result: Node) -> dict[str, Scalar]:
    given = result.get("parameters")
    named = {} if given is None else {name: value.text() for name, value in given.fields()}
    return {"command": result["command"].text(), **named}
