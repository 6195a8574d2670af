"""The capabilities of all load tools as text, for pages and docs/load-tools.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from orchestrator.loadtools.model import (
    PROTOCOL_TITLES,
    Capabilities,
    Knowledge,
    PercentileErrors,
)
from orchestrator.loadtools.registry import TOOLS, Adapter

_REPORTS: Mapping[Knowledge, str] = MappingProxyType(
    {"yes": "yes", "no": "no: unknown, never 0", "partly": "in part"}
)
_HEAD = """\
# Load tools

This page lists the capabilities of each load tool, from its sheet in `orchestrator/loadtools`. The
same sheet rejects definitions that the tool cannot execute. The page *Load tools* and
`GET /api/v1/load-tools` show it too, with the hosts that have the tool and its error against
[known values](definitions.md#known). `manage.py loadtools > docs/load-tools.md` writes this page.

Values that a tool does not report are unknown, never 0. *Does not detect itself* lists false
answers that only the [requests of the agent](validity.md#sampled-answers) detect. *Errors of
percentiles* are medians of three trials of a closed loop of 30 requests, against the log of a
server with constant, uniform and bimodal delays of 10 to 60 ms. With pauses, it answers nothing for
0.1 s every 2 s. `make bench-fidelity` measured this on two shared CPUs, so the errors contain the
noise of that machine.
[script-tool.md](script-tool.md) describes the input and output of `script`.
[configuration.md](configuration.md#on-a-developers-machine) describes how to install the tools.

"""
_WARMUP = MappingProxyType(
    {
        "inside": "the beginning of the measured load, separated by the times of its rows; with a "
        "count of requests, a separate load before",
        "apart": "a separate load before the measured one",
    }
)
_DISTRIBUTION = MappingProxyType(
    {
        "rows": "each request, with its time",
        "buckets": "all requests, without their times: there are no slices of seconds",
    }
)

_UNKNOWN_LENGTHS = MappingProxyType(
    {"no": "another length of the body", "partly": "another length of some bodies"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSheet:
    """`lines`: (capability, text)."""

    name: str
    minimum_version: str
    lines: Sequence[tuple[str, str]]
    caveats: Sequence[str]


def build_tool_sheets() -> list[ToolSheet]:
    """Return the sheets of all tools that a definition can name."""
    return [_build_sheet(tool) for tool in TOOLS.values()]


def list_protocols(sheet: Capabilities) -> list[str]:
    """Return the titles of the protocols, from oldest to newest."""
    return [title for each, title in PROTOCOL_TITLES.items() if each in sheet.protocols]


def format_version(tool: Adapter) -> str:
    """Return the oldest supported version; "any" if the tool has no versions."""
    return ".".join(map(str, tool.minimum_version)) if any(tool.minimum_version) else "any"


def render_document() -> str:
    """Return the text of docs/load-tools.md."""
    return _HEAD + "\n".join(_format_section(each) for each in build_tool_sheets())


def _build_sheet(tool: Adapter) -> ToolSheet:
    return ToolSheet(
        name=tool.name,
        minimum_version=format_version(tool),
        lines=tuple(_list_lines(tool.sheet)),
        caveats=tool.sheet.caveats,
    )


def _list_lines(sheet: Capabilities) -> list[tuple[str, str]]:
    ends = [
        name
        for name, can in (("duration", sheet.by_duration), ("count of requests", sheet.by_count))
        if can
    ]
    return [
        ("Protocols", ", ".join(list_protocols(sheet))),
        (
            "Open loop",
            "yes: sends on time, latency from when a request was due"
            if sheet.open_loop
            else "no: the next request waits for the response",
        ),
        ("Streams", "several per connection" if sheet.streams else "one request at a time"),
        ("Ends by", " or ".join(ends)),
        ("Random paths", _can(sheet.random_path)),
        ("Method, headers, body", _request(sheet)),
        ("Content codings", _can(sheet.compression)),
        ("Without keep-alive", _can(sheet.keepalive_off)),
        ("Timeouts", _format_timeouts(sheet)),
        ("Warm-up", _WARMUP[sheet.warmup]),
        ("Distribution", _DISTRIBUTION[sheet.distribution]),
        ("Reports each status", _REPORTS[sheet.status_codes]),
        ("Reports all errors", _REPORTS[sheet.errors]),
        ("Reports bytes received", _REPORTS[sheet.bytes_in]),
        ("Reports bytes sent", _REPORTS[sheet.bytes_out]),
        ("Reports the protocol", _format_reporting(sheet)),
        ("Verifies the certificate", _can(sheet.verifies_certificate)),
        ("Errors of percentiles", _format_errors(sheet.percentile_errors)),
        ("Does not detect itself", "; ".join(_list_undetected(sheet))),
    ]


def _format_errors(errors: PercentileErrors | None) -> str:
    if errors is None:
        return "unknown"
    ranges = (("p50", errors.p50), ("p99", errors.p99), ("p99.9", errors.p99_9))
    text = ", ".join(f"{name} {low:+g} to {high:+g} %" for name, (low, high) in ranges)
    return f"{text}; with pauses p99 {errors.p99_with_pauses:+g} %".replace("-", "−")


def _list_undetected(sheet: Capabilities) -> list[str]:
    """Return the false answers that only the agent's own requests detect (docs/validity.md)."""
    found = ["another body of the same length"]
    if sheet.body_lengths != "yes":
        found.append(_UNKNOWN_LENGTHS[sheet.body_lengths])
    if sheet.status_codes != "yes":
        found.append("some of the statuses")
    return [*found, "the answer to another request", "connections that the server closes"]


def _can(can: bool) -> str:
    return "yes" if can else "no"


def _request(sheet: Capabilities) -> str:
    parts = (("method", sheet.methods), ("headers", sheet.headers), ("body", sheet.body))
    return ", ".join(name for name, can in parts if can) or "none"


def _format_timeouts(sheet: Capabilities) -> str:
    parts = (("request", sheet.request_timeout), ("connect", sheet.connect_timeout))
    return ", ".join(name for name, can in parts if can) or "none"


def _format_reporting(sheet: Capabilities) -> str:
    reported = _REPORTS[sheet.reports_protocol].partition(":")[0]
    return (
        reported
        if reported == "yes"
        else f"{reported}: the checks before and after the load detect it"
    )


def _format_section(sheet: ToolSheet) -> str:
    lines = [f"## {sheet.name}", "", f"Version {sheet.minimum_version} or newer.", ""]
    if sheet.minimum_version == "any":
        lines[2] = "Any version."
    lines += ["| capability | |", "|---|---|"]
    lines += [f"| {what} | {how} |" for what, how in sheet.lines]
    lines += ["", *(f"- {caveat}" for caveat in sheet.caveats), ""]
    return "\n".join(lines)
