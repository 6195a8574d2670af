"""h2load's report, whose text the agent's reader keeps unchanged."""

import json
import re
from collections.abc import Mapping
from typing import Any

from orchestrator.loadtools.model import GARBAGE, LoadSpec, ToolOutputError
from orchestrator.loadtools.reading import ToolReport

_REQUESTS = re.compile(
    r"^requests: (?P<total>\d+) total, (?P<started>\d+) started, (?P<done>\d+) done, "
    r"(\d+) succeeded, (\d+) failed, (?P<errored>\d+) errored, (?P<timeout>\d+) timeout$",
    re.MULTILINE,
)
_TRAFFIC = re.compile(r"^traffic: .* total, .* headers .*\((\d+)\) data$", re.MULTILINE)
_PROTOCOL = re.compile(r"^Application protocol: (\S+)$", re.MULTILINE)
_CONNECT = re.compile(r"^time for connect: +\S+ +\S+ +([0-9.]+)(us|ms|s) ", re.MULTILINE)
_NAMES = {"http/1.1": "h1", "h2": "h2", "h2c": "h2"}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_NOT_AGREED = "No supported protocol was negotiated"


def read_report(
    spec: LoadSpec, tool_json: bytes, rows: Mapping[str, Any]
) -> tuple[ToolReport, int]:
    """Return the report and the number of body bytes; ToolOutputError if it is not valid."""
    try:
        return _parse_report(spec, tool_json, rows)
    except GARBAGE as error:
        raise ToolOutputError(f"h2load's report: {type(error).__name__}: {error}") from error


def _parse_report(
    spec: LoadSpec, tool_json: bytes, rows: Mapping[str, Any]
) -> tuple[ToolReport, int]:
    text, logged = _split_output(tool_json)
    requests, traffic = _REQUESTS.search(text), _TRAFFIC.search(text)
    if requests is None or traffic is None:
        last = text.strip().rpartition("\n")[2][:80]
        raise ToolOutputError(
            "h2load's report has no lines `requests:` and `traffic:`, so it did not end by "
            f"itself; the last line is {last!r}"
        )
    counts = {name: int(n) for name, n in requests.groupdict().items()}
    protocol = _PROTOCOL.search(text)
    try:
        known = rows["all"]["n"] == logged["answered"]
        by_status = {int(status): n for status, n in (rows["by_status"] or {}).items()}
    except GARBAGE as error:
        raise ToolOutputError(f"rows.json of the trial: {type(error).__name__}: {error}") from error
    report = ToolReport(
        by_status=by_status,
        errors=_count_errors(counts) if protocol else _count_unconnected(spec, counts, text),
        error_texts={} if protocol else _build_error_texts(text),
        truncated=counts["started"] - counts["done"] if spec.duration_s is not None else 0,
        readings=_read_readings(text),
        matches=known and logged["answered"] + logged["failed"] == counts["done"],
        protocol=_NAMES.get(protocol[1], protocol[1]) if protocol else None,
    )
    return report, int(traffic[1])


def _split_output(tool_json: bytes) -> tuple[str, dict[str, int]]:
    try:
        parts = json.loads(tool_json)
        logged = {name: int(parts["logged"][name]) for name in ("answered", "failed")}
        return str(parts["stdout"]), logged
    except GARBAGE as error:
        start = tool_json[:80].decode(errors="replace")
        raise ToolOutputError(
            f"not what the agent keeps of h2load ({type(error).__name__}: {error}): {start!r}"
        ) from error


def _count_errors(counts: Mapping[str, int]) -> dict[str, int]:
    """Return requests by error class; the connection of `unsent` ones failed before sending."""
    # With a duration, the total is the number of finished requests.
    unsent = max(0, counts["total"] - counts["started"])
    lost = counts["errored"] - counts["timeout"] - unsent
    errors = {"timeout": counts["timeout"], "broken": lost, "unsent": unsent}
    return {kind: n for kind, n in errors.items() if n}


def _count_unconnected(spec: LoadSpec, counts: Mapping[str, int], text: str) -> dict[str, int]:
    """Return connections by error class if none was established."""
    kind = "h2_protocol" if _NOT_AGREED in text else "connect"
    return {kind: counts["errored"] or spec.connections}


def _build_error_texts(text: str) -> dict[str, tuple[str, ...]]:
    """Return why no connection was established."""
    if _NOT_AGREED in text:
        return {"h2_protocol": ("TLS agreed on no protocol that was asked for (ALPN)",)}
    return {"connect": ("no connection was made; h2load does not report why",)}


def _read_readings(text: str) -> dict[str, float]:
    match = _CONNECT.search(text)
    mean_s = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    # It is 0us if no connection was made while h2load counted.
    return {"connect.mean": mean_s} if mean_s else {}
