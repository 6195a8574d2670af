"""oha's JSON: counts by status, errors, and its own values.

Its own values are stored under `oha.*` and only used to prove that rows and JSON belong together.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.loadtools.metrics import FIRST_BYTE_PERCENTILES, build_percentile_key
from orchestrator.loadtools.model import GARBAGE, ToolOutputError, is_supported
from orchestrator.loadtools.oha_errors import classify
from orchestrator.loadtools.oha_figures import OHA_FIGURES
from orchestrator.loadtools.reading import ToolReport, parse_json_report

_SECTIONS = ("summary", "latencyPercentiles", "statusCodeDistribution", "errorDistribution")
_MEANS = {
    "latency.first_byte.mean": ("details", "firstByte", "average"),
    "connect.mean": ("details", "DNSDialup", "average"),
    "dns.mean": ("details", "DNSLookup", "average"),
}


def read_report(tool_json: bytes, rows: Mapping[str, Any]) -> ToolReport:
    """Return the report in oha's JSON; ToolOutputError if it is not valid."""
    output = _parse_output(tool_json)
    try:
        errors, truncated, texts = classify(output["errorDistribution"])
        return ToolReport(
            by_status={int(code): n for code, n in output["statusCodeDistribution"].items()},
            errors=errors,
            error_texts={kind: tuple(examples) for kind, examples in texts.items()},
            truncated=truncated,
            readings=_read_figures(output, rows),
            matches=_do_rows_match(output, rows),
        )
    except GARBAGE as error:
        raise ToolOutputError(
            f"oha's output or rows.json: {type(error).__name__}: {error}"
        ) from error


def _parse_output(tool_json: bytes) -> dict[str, Any]:
    output = parse_json_report(tool_json, "oha's output")
    missing = [name for name in _SECTIONS if not isinstance(output.get(name), dict)]
    if missing:
        raise ToolOutputError(f"oha's output lacks {', '.join(missing)}: is it oha 1.14 or newer?")
    return output


def _read_figures(output: Mapping[str, Any], rows: Mapping[str, Any]) -> dict[str, float]:
    """Return oha's own values; null, missing and non-numeric ones are left out."""
    figures = {
        figure.key: value * figure.factor
        for figure in OHA_FIGURES
        if (value := _number(output, figure.path)) is not None
    }
    means = {
        key: value for key, path in _MEANS.items() if (value := _number(output, path)) is not None
    }
    first_byte = {
        build_percentile_key(percentile, "latency.first_byte"): value
        for percentile in FIRST_BYTE_PERCENTILES
        if is_supported(percentile, rows["all"]["n"])
        and (value := _number(output, ("firstBytePercentiles", f"p{percentile:g}"))) is not None
    }
    return {**figures, **means, **first_byte}


def _number(output: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = output
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _do_rows_match(output: Mapping[str, Any], rows: Mapping[str, Any]) -> bool:
    """Return whether rows and JSON describe the same requests: same number, same bits."""
    answered = sum(output["statusCodeDistribution"].values())
    return rows["all"]["n"] == answered and all(_compare_percentiles(output, rows))


def _compare_percentiles(output: Mapping[str, Any], rows: Mapping[str, Any]) -> Iterator[bool]:
    from_rows = rows["all"]["percentiles"]
    for name, value in output["latencyPercentiles"].items():
        yield from_rows.get(name) == value
