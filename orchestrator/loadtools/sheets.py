"""The sheets of all load tools in words, as people read them: pages, docs/load-tools.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from orchestrator.loadtools.capabilities import PROTOCOL_TITLES
from orchestrator.loadtools.model import Capabilities, Knowledge
from orchestrator.loadtools.registry import TOOLS, Adapter

_TELLS: Mapping[Knowledge, str] = MappingProxyType(
    {"yes": "yes", "no": "no: unknown, never 0", "partly": "in part"}
)
_HEAD = """\
# Load tools

What each load tool can do and tell, by its sheet in `orchestrator/loadtools`: the same sheet
refuses definitions that ask for what it cannot do, and makes the page *Load tools* and
`GET /api/v1/load-tools`, which also say which hosts have it and how wrong it was against
[known values](definitions.md#known). `manage.py loadtools > docs/load-tools.md` writes this page.

What a tool does not tell is unknown, never 0. What `script` is called with and what it has to print
is in [script-tool.md](script-tool.md); where the tools come from is in
[configuration.md](configuration.md).

"""
_WARMUP = MappingProxyType(
    {
        "inside": "the beginning of the measured load, told apart by the times of its rows; with a "
        "count of requests a load of its own before",
        "apart": "a load of its own before the measured one",
    }
)
_DISTRIBUTION = MappingProxyType(
    {
        "rows": "each request, with its time",
        "buckets": "all requests, without their times: there are no seconds to look at",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSheet:
    """`lines`: (what, how it is with this tool)."""

    name: str
    minimum_version: str
    lines: Sequence[tuple[str, str]]
    caveats: Sequence[str]


def tool_sheets() -> list[ToolSheet]:
    """Of every tool that a definition can name."""
    return [_sheet(tool) for tool in TOOLS.values()]


def protocols_of(sheet: Capabilities) -> list[str]:
    """In words, in the order of their age."""
    return [title for each, title in PROTOCOL_TITLES.items() if each in sheet.protocols]


def version_text(tool: Adapter) -> str:
    """The oldest version that is used; "any" where the tool has none of its own."""
    return ".".join(map(str, tool.minimum_version)) if any(tool.minimum_version) else "any"


def document() -> str:
    """docs/load-tools.md."""
    return _HEAD + "\n".join(_section(each) for each in tool_sheets())


def _sheet(tool: Adapter) -> ToolSheet:
    return ToolSheet(
        name=tool.name,
        minimum_version=version_text(tool),
        lines=tuple(_lines(tool.sheet)),
        caveats=tool.sheet.caveats,
    )


def _lines(sheet: Capabilities) -> list[tuple[str, str]]:
    ends = [
        name
        for name, can in (("duration", sheet.by_duration), ("count of requests", sheet.by_count))
        if can
    ]
    return [
        ("Protocols", ", ".join(protocols_of(sheet))),
        (
            "Open loop",
            "yes: sends on time, latency from when a request was due"
            if sheet.open_loop
            else "no: the next request waits for an answer",
        ),
        ("Streams", "several on a connection" if sheet.streams else "one request at a time"),
        ("Ends by", " or ".join(ends)),
        ("Random paths", _can(sheet.random_path)),
        ("Method, headers, body", _request(sheet)),
        ("Content codings", _can(sheet.compression)),
        ("Without keep-alive", _can(sheet.keepalive_off)),
        ("Time limits", _limits(sheet)),
        ("Warm-up", _WARMUP[sheet.warmup]),
        ("Distribution", _DISTRIBUTION[sheet.distribution]),
        ("Tells each status", _TELLS[sheet.status_codes]),
        ("Tells all errors", _TELLS[sheet.errors]),
        ("Tells bytes received", _TELLS[sheet.bytes_in]),
        ("Tells bytes sent", _TELLS[sheet.bytes_out]),
        ("Tells the protocol spoken", _spoken(sheet)),
        ("Checks the certificate", _can(sheet.verifies_certificate)),
    ]


def _can(can: bool) -> str:
    return "yes" if can else "no"


def _request(sheet: Capabilities) -> str:
    parts = (("method", sheet.methods), ("headers", sheet.headers), ("body", sheet.body))
    return ", ".join(name for name, can in parts if can) or "none of them"


def _limits(sheet: Capabilities) -> str:
    parts = (("of a request", sheet.request_timeout), ("of connecting", sheet.connect_timeout))
    return ", ".join(name for name, can in parts if can) or "none of its own"


def _spoken(sheet: Capabilities) -> str:
    told = _TELLS[sheet.spoken_protocol].partition(":")[0]
    return told if told == "yes" else f"{told}: the checks beside the load see it"


def _section(sheet: ToolSheet) -> str:
    lines = [f"## {sheet.name}", "", f"Version {sheet.minimum_version} or newer.", ""]
    if sheet.minimum_version == "any":
        lines[2] = "Any version."
    lines += ["| what | how |", "|---|---|"]
    lines += [f"| {what} | {how} |" for what, how in sheet.lines]
    lines += ["", *(f"- {caveat}" for caveat in sheet.caveats), ""]
    return "\n".join(lines)
