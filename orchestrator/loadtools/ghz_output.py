"""ghz's report without the details that the agent removed: counts and percentiles."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from agents.hostagent.readers.ghz import find_code, iterate_failures
from agents.hostagent.readers.grpc_status import get_code_number
from orchestrator.loadtools.model import GARBAGE, ToolOutputError
from orchestrator.loadtools.reading import ToolReport, parse_json_report

_NEEDED: Mapping[str, type] = {
    "count": int,
    "statusCodeDistribution": dict,
    "errorDistribution": dict,
}


def read_report(report: bytes, rows: Mapping[str, Any]) -> ToolReport:
    """Return ghz's report; errors are in the rows. ToolOutputError if it is not valid."""
    output = _parse_output(report)
    try:
        by_status = _count_answered(output)
        return ToolReport(by_status=by_status, matches=_do_rows_match(output, by_status, rows))
    except GARBAGE as error:
        raise ToolOutputError(
            f"ghz's report or rows.json: {type(error).__name__}: {error}"
        ) from error


def _parse_output(report: bytes) -> dict[str, Any]:
    output = parse_json_report(report, "ghz's report")
    missing = [name for name, kind in _NEEDED.items() if not isinstance(output.get(name), kind)]
    if missing:
        raise ToolOutputError(f"ghz's report lacks {', '.join(missing)}: is it ghz 0.93 or newer?")
    return output


def _count_answered(output: Mapping[str, Any]) -> dict[int, int]:
    """Return responses by gRPC's numeric status, without calls that the client aborted."""
    counts = Counter[int | None]()
    for name, count in output["statusCodeDistribution"].items():
        counts[get_code_number(name)] += count
    for _, text, count in iterate_failures(output["errorDistribution"]):
        counts[find_code(text)] -= count
    return {code: count for code, count in _sort_known_codes(counts) if count}


def _sort_known_codes(counts: Mapping[int | None, int]) -> list[tuple[int, int]]:
    return sorted((code, count) for code, count in counts.items() if code is not None)


def _do_rows_match(
    output: Mapping[str, Any], by_status: Mapping[int, int], rows: Mapping[str, Any]
) -> bool:
    """Return whether rows and report describe the same calls: same number, same nanoseconds."""
    answered = rows["all"]["n"]
    if answered != sum(by_status.values()):
        return False
    if answered + sum(rows["errors"].values()) != output["count"]:
        return False
    summary = {f"p{each['percentage']}": each["latency"] for each in _list_percentiles(output)}
    # ghz truncates its seconds to whole nanoseconds.
    return summary == {name: int(value * 1e9) for name, value in rows["all"]["percentiles"].items()}


def _list_percentiles(output: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return output.get("latencyDistribution") or []
