"""`results.json` of the TechEmpower framework benchmarks."""

from collections.abc import Iterator
from typing import Any

from orchestrator.importers.document import FileFaultError, Node, parse_document
from orchestrator.importers.rows import Better, Figure, Row, build_row
from orchestrator.importers.units import parse_seconds

SUITE = "TechEmpower"
#: Test → (the list of its loads, the axis for it); concurrency for others.
_LEVELS = {
    "plaintext": ("pipelineConcurrencyLevels", "connections"),
    "query": ("queryIntervals", "queries"),
    "update": ("queryIntervals", "queries"),
    "cached-query": ("cachedQueryIntervals", "queries"),
}
_CONCURRENCY = ("concurrencyLevels", "connections")
_LATENCIES = {
    "latencyAvg": "latency.mean",
    "latencyMax": "latency.max",
    "latencyStdev": "latency.sd",
}
_COUNTS: dict[str, Better] = {
    "totalRequests": "higher",
    "5xx": "lower",
    "connect": "lower",
    "read": "lower",
    "write": "lower",
    "timeout": "lower",
}


def read(content: bytes) -> Iterator[Row]:
    """Yield each value of each load of each framework and test.

    `requests.rate` is computed as on TechEmpower's own pages: the requests of a load divided by the
    common duration of all loads. A test without raw data has no rows.
    """
    whole = parse_document(content)
    fields = _read_common_fields(whole)
    seconds = whole["duration"].number()
    if seconds <= 0:
        raise whole["duration"].fault("expected seconds")
    for test, frameworks in whole["rawData"].fields():
        for framework, raw in frameworks.fields():
            case = {"test": test, "framework": framework}
            if isinstance(raw.value, list):
                yield from _iterate_load_rows(whole, raw, {**fields, "parameters": case}, seconds)
            else:
                more = {**fields, "parameters": {"framework": framework}}
                yield build_row(test, raw.figure(), "count", **more)


def _read_common_fields(whole: Node) -> dict[str, Any]:
    fields: dict[str, Any] = {"suite": SUITE}
    environment, git = whole.get("environmentDescription"), whole.get("git")
    if environment is not None:
        fields["environment"] = environment.text()
    if git is not None and (commit := git.get("commitId")):
        fields["commit"] = commit.text()
    if started := whole.get("startTime"):
        fields["measured_at"] = started.from_ms()
    return fields


def _iterate_load_rows(
    whole: Node, raw: Node, fields: dict[str, Any], seconds: float
) -> Iterator[Row]:
    levels, axis = _LEVELS.get(fields["parameters"]["test"], _CONCURRENCY)
    known = [int(level.number()) for level in whole[levels].items()]
    for place, load in enumerate(raw.items()):
        if place >= len(known):
            problem = f"{levels} has {len(known)} levels only, and none for this load"
            raise FileFaultError(load.path, problem)
        case = {**fields["parameters"], axis: known[place]}
        yield from _iterate_figure_rows(load, {**fields, "parameters": case}, seconds)


def _iterate_figure_rows(load: Node, fields: dict[str, Any], seconds: float) -> Iterator[Row]:
    for name, metric in _LATENCIES.items():
        latency = load.get(name)
        if latency is not None:
            yield build_row(metric, _read_seconds(latency), "s", **fields)
    for name, better in _COUNTS.items():
        count = load.get(name)
        if count is not None:
            yield build_row(name, count.figure(), "count", **fields, better=better)
    requests = load.get("totalRequests")
    if requests is not None:
        yield build_row("requests.rate", (requests.number() / seconds, ""), "1/s", **fields)


def _read_seconds(node: Node) -> Figure:
    value = parse_seconds(node.text())
    if value is None:
        raise node.fault("expected a time such as 1.23ms")
    return value, ""
