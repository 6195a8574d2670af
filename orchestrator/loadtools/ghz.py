"""ghz: its arguments, and the reading from its output. Flags as of 0.93."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from cli.pitwall.units import format_count
from orchestrator.loadtools.ghz_output import read_report
from orchestrator.loadtools.model import (
    Capabilities,
    GrpcCall,
    Invocation,
    LoadSpec,
    PercentileErrors,
    Problem,
    TrialReading,
)
from orchestrator.loadtools.problems import find_unsupported, load_problems
from orchestrator.loadtools.reading import build_reading
from orchestrator.loadtools.wall import estimate_waiting_s, estimate_wall_s

#: The number of calls whose times ghz keeps.
MAX_CALLS = 1_000_000
#: Maximum calls per second of ghz with a few cores; limits a closed loop without a known rate.
FASTEST_RATE = 15_000.0
#: ghz sorts and writes its calls after the load.
_SECONDS_PER_CALL = 2e-5
#: A primer only makes the server do its initial work.
_PRIMER_RATE = 10.0
_DATA, _METADATA = "grpc-data.json", "grpc-metadata.json"

SHEET = Capabilities(
    protocols=frozenset({("grpc", False), ("grpc", True)}),
    streams=True,
    open_loop=True,
    methods=False,
    body=False,
    compression=False,
    warmup="inside",
    bytes_in="no",
    reports_protocol="yes",
    percentile_errors=PercentileErrors(
        p50=(1.6, 7.6), p99=(1.1, 16), p99_9=(1.5, 21), p99_with_pauses=33
    ),
    caveats=(
        "One call of a stream is one request, whatever the number of its messages. Its latency "
        "is the time from its start to its status.",
        "With several messages in data, a streaming call sends all of them; a call with one "
        "request uses the next one each time.",
        "With a rate, calls start on time over any number of streams, up to the server's limit. "
        "Latency counts from when a call was due, so it includes ghz's own delay and waiting "
        "for a free stream. It does not include a delay that all calls have in common.",
        "Calls without a response are recognised by the client's error text. A server that "
        "reports UNAVAILABLE with such a text counts as broken, and every DEADLINE_EXCEEDED is "
        "a timeout.",
        "ghz reports no bytes.",
        "The agent samples only calls that the definition has among its checks.",
        f"ghz keeps the first {MAX_CALLS:,} calls.",
    ),
)


class Ghz:
    """The adapter of ghz."""

    name = "ghz"
    reader = "ghz"
    sheet = SHEET
    #: The oldest tested version.
    minimum_version = (0, 93, 0)

    def problems(self, spec: LoadSpec) -> list[Problem]:
        """Return all reasons why ghz cannot create this load; empty if it can."""
        problems = [*load_problems(spec), *find_unsupported(self.name, self.sheet, spec)]
        problems += _load_problems(spec)
        return problems if spec.grpc is None else [*problems, *_call_problems(spec, spec.grpc)]

    def invocations(self, spec: LoadSpec, tool_cpus: int) -> tuple[Invocation, ...]:
        """Return the commands to start, in order. The last one measures.

        With a duration, the warm-up is the beginning of the same load, because ghz reports the time
        of each call. With a number of calls it is a separate load before.
        """
        primers = (_build_primer(spec, tool_cpus),) if spec.primer_s > 0 else ()
        if spec.duration_s is not None:
            return (*primers, _measure(spec, tool_cpus, spec.warmup_s))
        warmups = (_build_warmup(spec, tool_cpus),) if spec.warmup_s > 0 else ()
        return (*primers, *warmups, _measure(spec, tool_cpus, 0.0))

    def files(self, spec: LoadSpec) -> dict[str, str]:
        """Return the request data as files, so that nothing of it is an argument."""
        assert spec.grpc is not None
        return {
            _DATA: json.dumps(spec.grpc.data),
            _METADATA: json.dumps(dict(spec.headers)),
        }

    def probe(self, _spec: LoadSpec) -> tuple[str, ...] | None:
        """Return None: the agent itself supports gRPC."""
        return None

    def parse(
        self, spec: LoadSpec, report: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading:
        """Return the canonical result of one load from ghz's report, the agent's rows and its
        result.

        It is a pure function. Raise ToolOutputError if a part is missing or not valid JSON.
        """
        return build_reading(self.name, spec, read_report(report, rows), rows, result)


def _load_problems(spec: LoadSpec) -> Iterator[Problem]:
    if spec.rate is not None and not float(spec.rate).is_integer():
        yield "rate", f"{spec.rate:g}: ghz takes whole calls a second only"
    if spec.model == "open" and spec.streams > 1:
        yield "streams", "ghz opens as many streams as a rate needs: leave streams out"
    calls = _estimate_calls(spec)
    if calls is not None and calls > MAX_CALLS:
        where = "requests" if spec.requests is not None else "duration_s"
        yield (
            where,
            f"about {format_count(calls)} calls expected, and ghz keeps the time of the first "
            f"{format_count(MAX_CALLS)}: make it shorter, or set a lower rate or expected_rate",
        )


def _estimate_calls(spec: LoadSpec) -> float | None:
    if spec.requests is not None or spec.duration_s is None:
        return spec.requests
    rate = spec.rate if spec.model == "open" else spec.expected_rate
    return (rate or FASTEST_RATE) * (spec.duration_s + spec.warmup_s)


def _call_problems(spec: LoadSpec, call: GrpcCall) -> Iterator[Problem]:
    if call.proto is not None and not call.proto.endswith(".proto"):
        yield "grpc.proto", f"{call.proto!r}: expected the name of a .proto file"
    for place, path in enumerate(call.import_paths):
        if "," in path:
            yield f"grpc.import_paths[{place}]", f"{path!r}: ghz cannot take a comma in a path"
    if isinstance(call.data, list | tuple) and not call.data:
        yield "grpc.data", "an empty list: give one message at least, {} is one"
    # ghz would expand it as a template, and the checks would send something else.
    if "{{" in json.dumps(call.data, ensure_ascii=False):
        yield "grpc.data", "{{ in it: ghz would take it for a template"
    names = Counter(name.lower() for name, _ in spec.headers)
    for place, (name, value) in enumerate(spec.headers):
        if "{{" in value:
            yield f"headers[{place}]", f"{name}: {{{{ in it: ghz would take it for a template"
        if names[name.lower()] > 1:
            yield f"headers[{place}]", f"{name}: ghz can send each name once only"


def _measure(spec: LoadSpec, tool_cpus: int, warmup_s: float) -> Invocation:
    amount: tuple[str, ...] = ("-n", str(spec.requests))
    if spec.duration_s is not None:
        amount = _build_duration_flag(warmup_s + spec.duration_s + _compute_half_interval_s(spec))
    return Invocation(
        argv=_build_argv(spec, tool_cpus, amount, "{rows}"),
        kind="measure",
        wall_limit_s=estimate_wall_s(spec, warmup_s, _SECONDS_PER_CALL),
        warmup_s=warmup_s,
        env=_ENV,
    )


def _build_warmup(spec: LoadSpec, tool_cpus: int) -> Invocation:
    return Invocation(
        argv=_build_argv(spec, tool_cpus, _build_duration_flag(spec.warmup_s), "{out}"),
        kind="warmup",
        wall_limit_s=spec.warmup_s + estimate_waiting_s(spec),
        env=_ENV,
    )


def _build_primer(spec: LoadSpec, tool_cpus: int) -> Invocation:
    gentle = replace(
        spec, model="open", rate=_PRIMER_RATE, searching=False, connections=1, streams=1
    )
    return Invocation(
        argv=_build_argv(gentle, tool_cpus, _build_duration_flag(spec.primer_s), "{out}"),
        kind="primer",
        wall_limit_s=spec.primer_s + estimate_waiting_s(spec),
        env=_ENV,
    )


def _compute_half_interval_s(spec: LoadSpec) -> float:
    """ghz waits for an interval before the first call, so the last call is due at the very end."""
    return 0.0 if spec.rate is None or spec.searching else 0.5 / spec.rate


#: Otherwise gRPC would use a proxy of the host.
_ENV: Mapping[str, str] = {"NO_PROXY": "*", "no_proxy": "*"}


def _build_duration_flag(seconds: float) -> tuple[str, ...]:
    # Without "wait", calls in flight at the end are cut off, including the slowest.
    return ("-z", _format_duration(seconds), "--duration-stop", "wait")


def _build_argv(
    spec: LoadSpec, tool_cpus: int, amount: tuple[str, ...], out: str
) -> tuple[str, ...]:
    call = spec.grpc
    assert call is not None
    argv = ["{tool}", "-O", "json", "-o", out, "--cpus", str(tool_cpus)]
    argv += ["-t", _format_duration(spec.request_timeout_s)]
    argv += ["--connect-timeout", _format_duration(spec.connect_timeout_s)]
    argv += ["--connections", str(spec.connections)]
    if spec.rate is None:
        argv += ["-c", str(spec.at_once)]
    else:
        # Only --async is an open loop. Its workers never wait, so one per connection is enough.
        argv += ["-c", str(spec.connections), "-r", spec.rate_text, "--async"]
    argv += amount
    argv += ["--cacert", "{ca}"] if spec.tls else ["--insecure"]
    if call.proto is not None:
        folders = ["{tree}", *(f"{{tree}}/{path}" for path in call.import_paths)]
        argv += ["--proto", call.proto, "-i", ",".join(folders)]
    argv += ["--call", call.method, "-D", "{trial_dir}/" + _DATA]
    if spec.headers:
        argv += ["-M", "{trial_dir}/" + _METADATA]
    return (*argv, "{address}:{port}")


def _format_duration(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"
