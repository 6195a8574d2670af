"""One result file of asv (`results/<machine>/<commit>-<environment>.json`), version 2."""

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from orchestrator.importers.document import FileFaultError, Node, parse_document
from orchestrator.importers.rows import MOST_PARAMETERS, Better, Row, Scalar, build_row

#: Combinations of the parameters of one benchmark.
_MOST_CASES = 20_000
#: Prefix of a benchmark's name → (metric, unit, better).
_KINDS: dict[str, tuple[str, str, Better]] = {
    "time": ("time", "s", "lower"),
    "timeraw": ("time", "s", "lower"),
    "mem": ("memory", "B", "lower"),
    "peakmem": ("peak memory", "B", "lower"),
    "track": ("value", "", ""),
}
#: Columns with one value for each combination of parameters → statistic.
_COLUMNS = {
    "result": "",
    "stats_ci_99_a": "ci99 low",
    "stats_ci_99_b": "ci99 high",
    "stats_q_25": "q25",
    "stats_q_75": "q75",
    "stats_number": "number",
    "stats_repeat": "repeat",
}
_COUNTS = frozenset({"stats_number", "stats_repeat"})


def read(content: bytes) -> Iterator[Row]:
    """Yield each benchmark's result for each combination of its parameters, and its statistics.

    asv keeps names of parameters elsewhere: here they are `param1`, `param2`, … A result that is
    null (it failed) or NaN (it was skipped) is unknown.
    """
    whole = parse_document(content)
    if whole["version"].value != 2:
        raise whole["version"].fault("expected results of version 2; run `asv update` first")
    machine = whole["params"].get("machine")
    fields = {
        "environment": "" if machine is None else machine.text(),
        "commit": whole["commit_hash"].text(),
        "measured_at": whole["date"].from_ms(),
    }
    columns = [name.text() for name in whole["result_columns"].items()]
    for benchmark, result in whole["results"].fields():
        cells = dict(zip(columns, result.items(), strict=False))
        yield from _iterate_rows(benchmark, cells, whole["env_name"].text(), fields, result)


def _iterate_rows(
    benchmark: str, cells: Mapping[str, Node], env: str, fields: dict[str, Any], result: Node
) -> Iterator[Row]:
    kind = benchmark.rpartition(".")[2].partition("_")[0]
    metric, unit, better = _KINDS.get(kind, _KINDS["track"])
    cases = _list_cases(cells.get("params"), {"benchmark": benchmark, "env": env})
    for column, statistic in _COLUMNS.items():
        cell = cells.get(column)
        for parameters, figure in _pair_with_results(cases, cell, result):
            is_count = column in _COUNTS
            yield build_row(
                metric,
                figure.figure(),
                "count" if is_count else unit,
                **fields,
                parameters=parameters,
                better="" if is_count else better,
                statistic=statistic,
            )
    for parameters, samples in _pair_with_results(cases, cells.get("samples"), result):
        for number, sample in enumerate([] if samples.value is None else samples.items(), 1):
            yield build_row(
                metric, sample.figure(), unit, **fields, parameters=parameters, better=better,
                statistic=f"run {number}",
            )  # fmt: skip


def _list_cases(params: Node | None, named: dict[str, Scalar]) -> list[dict[str, Scalar]]:
    """Return the combinations in asv's order: the last parameter changes first."""
    if params is None or params.value is None:
        return [named]
    axes = [[value.text() for value in axis.items()] for axis in params.items()]
    if len(axes) > MOST_PARAMETERS or prod(map(len, axes)) > _MOST_CASES:
        raise params.fault(
            f"expected at most {MOST_PARAMETERS} parameters and {_MOST_CASES} combinations of them"
        )
    return [
        {**named, **{f"param{place}": value for place, value in enumerate(values, 1)}}
        for values in product(*axes)
    ]


def _pair_with_results(
    cases: list[dict[str, Scalar]], cell: Node | None, result: Node
) -> Iterator[tuple[dict[str, Scalar], Node]]:
    """Yield each case with its value; a result of null applies to all of them."""
    if cell is None:
        return
    if cell.value is None:
        if cell.path.endswith("[0]"):
            yield from ((case, cell) for case in cases)
        return
    figures = list(cell.items())
    if len(figures) != len(cases):
        problem = f"expected {len(cases)} values, one for each case, got {len(figures)}"
        raise FileFaultError(result.path, problem)
    yield from zip(cases, figures, strict=True)
