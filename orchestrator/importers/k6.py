"""The summary of k6: from `--summary-export`, or the data for `handleSummary`."""

import re
from collections.abc import Iterator

from orchestrator.importers.document import Node, parse_document
from orchestrator.importers.rows import Better, Figure, Row, build_row
from orchestrator.loadtools.metrics import find_metric

_PERCENTILE = re.compile(r"p\((\d+(?:\.\d+)?)\)")
_LATENCY = {"avg": "latency.mean", "med": "latency.p50", "min": "latency.min", "max": "latency.max"}
_HTTP_TIMES = frozenset(
    f"http_req_{part}"
    for part in ("blocked", "connecting", "tls_handshaking", "sending", "waiting", "receiving")
)
_STATISTICS = {"avg": "mean", "med": "p50"}


def read(content: bytes) -> Iterator[Row]:
    """Yield each number of each metric.

    `http_req_duration` and the rate of `http_reqs` become metrics of ours. Percentiles without such
    a metric, and all other metrics, keep k6's names.
    """
    for name, metric in parse_document(content)["metrics"].fields():
        values = metric.get("values") or metric
        contains = metric.get("contains")
        unit = _derive_unit(name, "" if contains is None else contains.text())
        for statistic, node in values.fields():
            if isinstance(node.value, int | float) and not isinstance(node.value, bool):
                yield _build_k6_row(
                    name, statistic, node.figure(), _choose_unit(statistic, unit, values)
                )


def _build_k6_row(name: str, statistic: str, figure: Figure, unit: str) -> Row:
    if ours := _map_to_own_metric(name, statistic):
        return build_row(ours, figure, unit)
    percentile = _PERCENTILE.fullmatch(statistic)
    called = f"p{percentile[1]}" if percentile else _STATISTICS.get(statistic, statistic)
    better: Better = "lower" if unit == "ms" else ""
    return build_row(name, figure, unit, statistic=called, better=better)


def _choose_unit(statistic: str, unit: str, values: Node) -> str:
    """Return the unit. A counter has a count and a rate; a share also has passes and fails."""
    if statistic in ("passes", "fails"):
        return "count"
    if statistic in ("rate", "value") and values.get("passes") is not None:
        return "ratio"
    if values.get("count") is None:
        return unit
    return (unit or "count") if statistic == "count" else f"{unit or 1}/s"


def _map_to_own_metric(name: str, statistic: str) -> str:
    if name == "http_reqs" and statistic == "rate":
        return "requests.rate"
    if name != "http_req_duration":
        return ""
    percentile = _PERCENTILE.fullmatch(statistic)
    key = f"latency.p{percentile[1]}" if percentile else _LATENCY.get(statistic, "")
    return key if key and find_metric(key) else ""


def _derive_unit(name: str, contains: str) -> str:
    """Return the unit.

    `--summary-export` has none: derive it from the names of k6's own metrics.
    """
    base = name.partition("{")[0]
    if contains == "data" or base in ("data_sent", "data_received"):
        return "B"
    timed = base.endswith("_duration") or base in _HTTP_TIMES
    return "ms" if contains == "time" or (timed and not contains) else ""
