"""A program of the definition as the load tool, and its input (docs/script-tool.md)."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from cli.pitwall.units import format_bytes
from orchestrator.loadtools.model import (
    Capabilities,
    Invocation,
    LoadSpec,
    Problem,
    TrialReading,
)
from orchestrator.loadtools.problems import find_unsupported, load_problems
from orchestrator.loadtools.reading import build_reading
from orchestrator.loadtools.script_output import read_report

#: The version of its input.
SCHEMA = 1
#: Linux allows 128 KiB per argument.
MAX_ARGUMENT_BYTES = 120_000
_SLACK_S = 30.0
#: Assumed rates of a number of requests without a known rate: of all connections, of each stream.
_SLOWEST_RATE, _SLOWEST_RATE_OF_ONE = 100.0, 5.0
_PRIMER_RATE = 10.0
_AGENT_WORD = re.compile(r"\{[a-z_][a-z0-9_]*\}")
#: A file of the tree, written relative to the folder of the server.
_RELATIVE_FILE = re.compile(r"(\./)?[\w-]+(/[\w.-]+)*\.(py|js|mjs|ts|rb|pl|sh|lua|php|jar)\Z")

SHEET = Capabilities(
    protocols=frozenset(
        {("h3", True), *((spoken, tls) for spoken in ("h1", "h2", "grpc") for tls in (False, True))}
    ),
    streams=True,
    open_loop=True,
    random_path=True,
    keepalive_off=True,
    warmup="inside",
    distribution="rows",
    status_codes="partly",
    body_lengths="partly",
    errors="partly",
    bytes_in="partly",
    reports_protocol="partly",
    verifies_certificate=False,
    caveats=(
        "All information comes from the program of the definition: whether it keeps to the "
        "requested load, which responses are good, whether it verifies certificates and which "
        "protocol it used.",
        "In an open loop it has to count latency from when a request was due.",
        "Results that it reports in batches have no times: there are no slices, and it has to "
        "exclude its warm-up.",
        "Its own speed is part of the result: check the share of its CPUs that it used.",
    ),
)


class Script:
    """The adapter of programs that belong to a definition."""

    name = "script"
    reader = "script"
    sheet = SHEET
    #: Any version: the program's version is that of the commit.
    minimum_version = (0, 0, 0)

    def problems(self, spec: LoadSpec) -> list[Problem]:
        """Return all reasons why this load cannot be started with a script; empty if it can."""
        problems = [*load_problems(spec), *find_unsupported(self.name, self.sheet, spec)]
        return problems or list(_find_own_problems(spec))

    def invocations(self, spec: LoadSpec, _tool_cpus: int) -> tuple[Invocation, ...]:
        """Return the commands to start, in order. The last one measures, after its warm-up."""
        measure = _start(spec, "measure", _estimate_loading_s(spec))
        if spec.primer_s <= 0:
            return (measure,)
        gentle = replace(
            spec, model="open", rate=_PRIMER_RATE, searching=False, connections=1, streams=1,
            duration_s=spec.primer_s, requests=None, warmup_s=0.0,
        )  # fmt: skip
        return (_start(gentle, "primer", spec.primer_s), measure)

    def files(self, _spec: LoadSpec) -> dict[str, str]:
        return {}

    def probe(self, spec: LoadSpec) -> tuple[str, ...] | None:
        """Return the arguments for one request over HTTP/3, which only the program can send."""
        if spec.protocol != "h3":
            return None
        once = replace(
            spec, model="closed", rate=None, searching=False, connections=1, streams=1,
            duration_s=None, requests=1, warmup_s=0.0,
        )  # fmt: skip
        return (*spec.command, build_request(once))

    def parse(
        self, spec: LoadSpec, report: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading:
        """Return the canonical result of one load; ToolOutputError if it contains no metric."""
        return build_reading(self.name, spec, read_report(report, rows), rows, result)


def _start(spec: LoadSpec, kind: Literal["primer", "measure"], loading_s: float) -> Invocation:
    waiting_s = spec.request_timeout_s + spec.connect_timeout_s
    return Invocation(
        argv=(*spec.command, build_request(spec)),
        kind=kind,
        wall_limit_s=spec.warmup_s + loading_s + waiting_s + _SLACK_S,
        warmup_s=spec.warmup_s,
    )


def build_request(spec: LoadSpec) -> str:
    """Return the JSON object that is the program's last argument, with placeholders of the agent.

    The fields are those of docs/script-tool.md.
    """
    fields = {
        "schema": SCHEMA,
        "url": f"{spec.scheme}://{{address}}:{{port}}{spec.path}",
        "address": "{address}",
        "tls": spec.tls,
        "ca": "{ca}" if spec.tls else None,
        "protocol": spec.protocol,
        "model": spec.model,
        "connections": spec.connections,
        "streams": spec.streams,
        "duration_s": spec.duration_s,
        "requests": spec.requests,
        "warmup_s": spec.warmup_s,
        "method": spec.method,
        "path": spec.path,
        "random_path": spec.random_path,
        "headers": spec.headers,
        "body": spec.body,
        "compression": spec.compression,
        "keepalive": spec.keepalive,
        "grpc": _export_grpc(spec),
        "request_timeout_s": spec.request_timeout_s,
        "connect_timeout_s": spec.connect_timeout_s,
        "parameters": dict(spec.parameters),
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    # Numbers that only the agent knows.
    rate = "null" if spec.rate is None else spec.rate_text
    return f'{text[:-1]},"port":{{port}},"rate":{rate}}}'


def _export_grpc(spec: LoadSpec) -> dict[str, Any] | None:
    if spec.grpc is None:
        return None
    call = spec.grpc
    return {
        "call": call.method,
        "proto": call.proto,
        "import_paths": list(call.import_paths),
        "data": call.data,
    }


def _estimate_loading_s(spec: LoadSpec) -> float:
    if spec.duration_s is not None:
        return spec.duration_s
    slowest = min(_SLOWEST_RATE, _SLOWEST_RATE_OF_ONE * spec.at_once)
    rate = spec.rate or spec.expected_rate or slowest
    return 3 * (spec.requests or 0) / rate


def _find_own_problems(spec: LoadSpec) -> Iterator[Problem]:
    if not spec.command:
        yield "command", 'name the program: command: ["{python}", "{tree}/client.py"]'
    for place, word in enumerate(spec.command):
        if _RELATIVE_FILE.match(word):
            file = word.removeprefix("./")
            text = f"{word} is relative to the trial's folder: write {{tree}}/{file}"
            yield f"command[{place}]", text
    for name, value in spec.parameters.items():
        if isinstance(value, str) and (match := _AGENT_WORD.search(value)):
            text = f"{match.group()} in its value {value!r} might be replaced on the host"
            yield f"parameters.{name}", text
    size = len(build_request(spec).encode())
    if size > MAX_ARGUMENT_BYTES:
        limit = format_bytes(MAX_ARGUMENT_BYTES)
        text = f"the program's input has {format_bytes(size)}, more than {limit}"
        yield "body", f"{text}: put a large body into a file of the tree"
