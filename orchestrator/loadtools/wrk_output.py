"""The report of wrk's script, as the agent's reader keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.loadtools.model import GARBAGE, Reason, ToolOutputError, TrialReading
from orchestrator.loadtools.reading import ToolReport, parse_json_report


@dataclass(frozen=True, slots=True, kw_only=True)
class WrkReport:
    """`bad` responses had a status above 399, `late` ones came after the timeout."""

    answered: int
    duration_s: float
    bad: int
    late: int
    failed: int


def read_report(tool_json: bytes, rows: Mapping[str, Any]) -> tuple[WrkReport, ToolReport]:
    """Return both reports; ToolOutputError if the output is not valid."""
    report = _parse_report(tool_json)
    try:
        # A late response counts as answered, and has no latency.
        matches = rows["all"]["n"] == report.answered - report.late
    except GARBAGE as error:
        raise ToolOutputError(f"rows.json of the trial: {type(error).__name__}: {error}") from error
    try:
        readings = _compute_readings(report)
    except ArithmeticError as error:
        raise ToolOutputError(f"wrk's report has an invalid number: {error}") from error
    return report, ToolReport(readings=readings, matches=matches, ended_s=report.duration_s)


def _parse_report(tool_json: bytes) -> WrkReport:
    report = parse_json_report(tool_json, "wrk's report")
    try:
        errors = {kind: int(n) for kind, n in report["errors"].items()}
        return WrkReport(
            answered=int(report["requests"]),
            duration_s=report["duration_us"] / 1e6,
            bad=errors["status"],
            late=errors["timeout"],
            failed=errors["connect"] + errors["read"] + errors["write"] + errors["timeout"],
        )
    except GARBAGE as error:
        raise ToolOutputError(
            f"wrk's report: {type(error).__name__}: {error}; was it wrk 4.1 with Pitwall's script?"
        ) from error


def _compute_readings(report: WrkReport) -> dict[str, float]:
    """Return metrics of the good responses that are known without knowing which ones they are."""
    if report.bad and report.late:
        # A response may be both.
        return {}
    good = report.answered - report.bad - report.late
    readings = {"requests.ok": float(good)}
    if good and report.duration_s:
        readings["requests.rate"] = good / report.duration_s
    done = report.answered - report.late + report.failed
    return {**readings, "success.ratio": good / done} if done else readings


def with_status_errors(reading: TrialReading, wrk: WrkReport) -> TrialReading:
    """Return the reading with the number of bad responses, which rows do not contain."""
    if not wrk.bad:
        return reading
    message = (
        f"{wrk.bad} of {wrk.answered} answers had a status above 399; wrk does not report which, "
        "so the latencies of the good ones are unknown"
    )
    reasons = tuple(_replace_message(reason, message) for reason in reading.validity.reasons)
    return replace(reading, validity=replace(reading.validity, reasons=reasons))


def _replace_message(reason: Reason, message: str) -> Reason:
    return replace(reason, message=message) if reason.code == "http_errors" else reason
