"""`data.json` of the-benchmarker/web-frameworks."""

from collections.abc import Iterator
from typing import Any

from orchestrator.importers.document import Node, parse_document
from orchestrator.importers.rows import Better, Row, Scalar, build_row

SUITE = "web-frameworks"
#: Values that mean that nothing was measured.
_SENTINEL = -1

#: Label → (metric, unit, better). `percentile99` keeps its name: the project has stored the 95th
#: percentile under it.
_METRICS: dict[str, tuple[str, str, Better]] = {
    "total_requests_per_s": ("requests.rate", "1/s", "higher"),
    "average_latency": ("latency.mean", "s", "lower"),
    "minimum_latency": ("latency.min", "s", "lower"),
    "maximum_latency": ("latency.max", "s", "lower"),
    "standard_deviation": ("latency.sd", "s", "lower"),
    "percentile50": ("latency.p50", "s", "lower"),
    "percentile75": ("latency.p75", "s", "lower"),
    "percentile90": ("latency.p90", "s", "lower"),
    "percentile99": ("percentile99", "s", "lower"),
    "percentile99999": ("percentile99999", "s", "lower"),
    "duration_ms": ("duration_ms", "ms", ""),
    "total_requests": ("total_requests", "count", "higher"),
    "total_bytes_received": ("total_bytes_received", "B", ""),
    "http_errors": ("http_errors", "count", "lower"),
    "request_timeouts": ("request_timeouts", "count", "lower"),
    "socket_connection_errors": ("socket_connection_errors", "count", "lower"),
    "socket_read_errors": ("socket_read_errors", "count", "lower"),
    "socket_write_errors": ("socket_write_errors", "count", "lower"),
}


def read(content: bytes) -> Iterator[Row]:
    """Yield each metric of each framework and level of concurrency; the commit is its version."""
    whole = parse_document(content)
    frameworks = {
        each["id"].number(): _read_framework(each) for each in whole["frameworks"].items()
    }
    fields: dict[str, Any] = {"suite": SUITE, "environment": _read_environment(whole)}
    updated = whole.get("updated_at")
    if updated is not None:
        fields["measured_at"] = updated.instant()
    for figure in whole["metrics"].items():
        number = figure["framework_id"]
        framework = frameworks.get(number.number())
        if framework is None:
            raise number.fault("expected the id of one of the frameworks")
        yield _build_framework_row(figure, {**fields, **framework})


def _build_framework_row(figure: Node, fields: dict[str, Any]) -> Row:
    label = figure["label"].text()
    metric, unit, better = _METRICS.get(label, (label, "", ""))
    value = Node(figure.value.get("value"), f"{figure.path}.value").figure(_SENTINEL)
    level = int(figure["level"].number())
    more = {**fields, "parameters": {**fields["parameters"], "connections": level}}
    return build_row(metric, value, unit, **more, better=better)


def _read_framework(each: Node) -> dict[str, Any]:
    parameters: dict[str, Scalar] = {
        "language": each["language"].text(),
        "framework": each["label"].text(),
    }
    version = each.get("version")
    return {"parameters": parameters, "commit": "" if version is None else version.text()}


def _read_environment(whole: Node) -> str:
    hardware = whole.get("hardware")
    if hardware is None:
        return ""
    cpu, count = hardware.get("cpu_name"), hardware.get("cpus")
    parts = [cpu.text() if cpu else "", f"{count.text()} CPUs" if count else ""]
    return ", ".join(part for part in parts if part)
