"""A script's output in addition to its requests, as the agent's reader keeps it."""

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.loadtools.metrics import METRICS
from orchestrator.loadtools.model import GARBAGE, ToolOutputError
from orchestrator.loadtools.reading import ToolReport
from orchestrator.loadtools.script_metrics import PREFIX, SUFFIXES, parse_own_metric

#: Metrics of the registry that a script may report; Pitwall determines all others itself.
REPORTED = ("latency.first_byte.", "connect.", "dns.")


def read_report(tool_json: bytes, rows: Mapping[str, Any]) -> ToolReport:
    """Return the report; ToolOutputError if it is not valid or contains an unknown metric."""
    try:
        report = json.loads(tool_json)
        ended_s = report["ended_s"]
        own = {
            key: float(value)
            for key, value in rows["tool_metrics"].items()
            if _check_own_metric(key)
        }
        return ToolReport(
            by_status=_count_by_status(rows),
            readings={**own, **_compute_success(rows)},
            protocol=rows["protocol"],
            ended_s=None if ended_s is None else float(ended_s),
        )
    except GARBAGE as error:
        start = tool_json[:80].decode(errors="replace")
        raise ToolOutputError(
            f"not what the agent keeps of a script ({type(error).__name__}: {error}): {start!r}"
        ) from error


def _count_by_status(rows: Mapping[str, Any]) -> dict[int, int] | None:
    """Return None if the script did not report all statuses, or reported them as words."""
    counts = rows["by_status"]
    answered = sum(rows["ok"]["count"]) + sum(rows["other"]["count"])
    if counts is None or sum(counts.values()) != answered or not all(map(str.isdigit, counts)):
        return None
    return {int(status): n for status, n in counts.items()}


def _compute_success(rows: Mapping[str, Any]) -> dict[str, float]:
    """Return the share of good responses, which the script defines regardless of the status."""
    good, other = sum(rows["ok"]["count"]), sum(rows["other"]["count"])
    done = good + other + sum((rows["errors"] or {}).values())
    return {"success.ratio": good / done} if done else {}


def _check_own_metric(key: str) -> bool:
    """Return True, or raise ToolOutputError."""
    if parse_own_metric(key) is not None or (key in METRICS and key.startswith(REPORTED)):
        return True
    if key in METRICS:
        raise ToolOutputError(
            f"the script reports {key}, which Pitwall determines itself from the "
            f"requests: leave it out, or call it {PREFIX}<name>"
        )
    endings = ", ".join(f"_{ending}" for ending in SUFFIXES)
    raise ToolOutputError(
        f"the script reports {key}, which is not a metric: its own metrics are called "
        f"{PREFIX}<name> in small letters, digits and _, and end with their unit, one of {endings}"
    )
