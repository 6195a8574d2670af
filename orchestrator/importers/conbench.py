"""Results of Conbench, as its API returns them and as its clients send them."""

import json
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from orchestrator.importers.document import Node, parse_document
from orchestrator.importers.rows import Better, Figure, Row, Scalar, build_row
from orchestrator.importers.units import classify_unit

#: Field of `stats` → statistic.
_FIGURES = {
    "median": "median",
    "min": "min",
    "max": "max",
    "stdev": "sd",
    "q1": "q1",
    "q3": "q3",
    "iqr": "iqr",
}
#: Tags that are no part of a case: the name of the benchmark, its suite and an internal id.
_NAMED = ("name", "suite", "id")
_DIRECTIONS: dict[str, Better] = {"time": "lower", "rate": "higher"}


def read(content: bytes) -> Iterator[Row]:
    """Yield the mean of each result, and its other statistics.

    The document is one result, a list of them, or a page of the API (`{"data": […]}`). The suite is
    the tag `suite`; the other tags and the language are the case. A result with an error has no
    value.
    """
    whole = parse_document(content)
    for result in _list_results(whole):
        yield from _iterate_rows(result)


def _list_results(whole: Node) -> Iterator[Node]:
    if isinstance(whole.value, list):
        return whole.items()
    pages = whole.get("data")
    return iter([whole]) if pages is None else pages.items()


def _iterate_rows(result: Node) -> Iterator[Row]:
    tags, stats = result["tags"], result.get("stats")
    if stats is None:
        return
    unit = _read_text(stats, "unit")
    kind = classify_unit(unit)
    more: dict[str, Any] = {
        **_read_commit(result),
        "suite": _read_text(tags, "suite"),
        "environment": _read_environment(result),
        "parameters": _read_parameters(result),
        "measured_at": result["timestamp"].instant(),
        "better": _DIRECTIONS.get(kind, ""),
    }
    yield build_row(kind, _read_mean(stats), unit, **more)
    for name, statistic in _FIGURES.items():
        figure = stats.get(name)
        if figure is not None:
            yield build_row(kind, figure.figure(), unit, **more, statistic=statistic)


def _read_mean(stats: Node) -> Figure:
    """Return the mean; Conbench leaves it out if there are few values."""
    mean = stats.get("mean")
    if mean is not None:
        return mean.figure()
    data = stats.get("data")
    if data is None or not data.value:
        return None, "null"
    try:
        return fmean(each.number() for each in data.items()), ""
    except OverflowError as error:
        raise data.fault("expected numbers whose mean can be stored") from error


def _read_commit(result: Node) -> dict[str, Any]:
    commit = result.get("commit")
    if commit is None:
        sent = result.get("github")
        sha = sent and sent.get("commit")
        return {"commit": "" if sha is None else sha.text()}
    moment = commit.get("timestamp")
    return {
        "commit": _read_text(commit, "sha"),
        "subject": _read_text(commit, "message").partition("\n")[0],
        "author": _read_text(commit, "author_name"),
        "committed_at": None if moment is None else moment.instant(),
    }


def _read_environment(result: Node) -> str:
    for name in ("hardware", "machine_info", "cluster_info"):
        machine = result.get(name)
        if machine is not None and (text := _read_text(machine, "name")):
            return text
    return ""


def _read_parameters(result: Node) -> dict[str, Scalar]:
    tags = result["tags"]
    parameters: dict[str, Scalar] = {"benchmark": tags["name"].text()}
    for name, tag in tags.fields():
        if name not in _NAMED and tag.value is not None:
            is_plain = isinstance(tag.value, str | int | float | bool)
            parameters[name] = tag.value if is_plain else json.dumps(tag.value, sort_keys=True)
    context = result.get("context")
    language = "" if context is None else _read_text(context, "benchmark_language")
    return {**parameters, "language": language} if language else parameters


def _read_text(node: Node, name: str) -> str:
    field = node.get(name)
    return "" if field is None else field.text()
