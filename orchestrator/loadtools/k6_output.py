"""k6's report: the number of requests, and the shortest and the longest of them."""

from collections.abc import Mapping
from typing import Any

from orchestrator.loadtools.model import GARBAGE, ToolOutputError
from orchestrator.loadtools.reading import ToolReport, parse_json_report

#: k6 reports these requests, but never started them.
_NOT_SENT = "not_sent"


def read_report(report: bytes, rows: Mapping[str, Any]) -> ToolReport:
    """Return k6's report, which the rows complete; ToolOutputError if it is not valid."""
    output = _parse_output(report)
    try:
        by_status = {int(status): n for status, n in output["answered"].items()}
        return ToolReport(
            by_status=by_status, matches=_do_rows_match(output["metrics"], by_status, rows)
        )
    except GARBAGE as error:
        raise ToolOutputError(
            f"k6's report or rows.json: {type(error).__name__}: {error}"
        ) from error


def _parse_output(report: bytes) -> dict[str, Any]:
    output = parse_json_report(report, "k6's report")
    needed = ("asked", "answered", "metrics")
    missing = [name for name in needed if not isinstance(output.get(name), dict)]
    if missing:
        raise ToolOutputError(f"k6's report lacks {', '.join(missing)}: was it made by load.js?")
    return output


def _do_rows_match(
    metrics: Mapping[str, Any], by_status: Mapping[int, int], rows: Mapping[str, Any]
) -> bool:
    """Return whether rows and report describe the same requests: same numbers, same extremes."""
    errors = rows["errors"]
    begun = rows["all"]["n"] + sum(errors.values()) - errors.get(_NOT_SENT, 0)
    return (
        rows["all"]["n"] == sum(by_status.values())
        and begun == _count(metrics, "iterations")
        and errors.get(_NOT_SENT, 0) == _count(metrics, "dropped_iterations")
        and _do_extremes_match(metrics, rows["all"]["percentiles"])
    )


def _count(metrics: Mapping[str, Any], name: str) -> int:
    """Return a count; k6 leaves out metrics without a value."""
    return int(metrics[name]["values"]["count"]) if name in metrics else 0


def _do_extremes_match(metrics: Mapping[str, Any], percentiles: Mapping[str, float]) -> bool:
    duration = metrics.get("http_req_duration") or metrics.get("grpc_req_duration")
    if duration is None:
        return not percentiles
    # Milliseconds here and seconds there, both of whole nanoseconds.
    return [round(duration["values"][name] * 1e6) for name in ("min", "max")] == [
        round(percentiles[name] * 1e9) for name in ("p0", "p100")
    ]
