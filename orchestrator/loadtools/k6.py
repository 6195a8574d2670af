"""k6: its script and arguments, and the reading from its output. Flags as of 1.8."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from cli.pitwall.units import format_count, format_seconds
from orchestrator.loadtools.k6_output import read_report
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
from orchestrator.loadtools.wall import estimate_counted_s, estimate_waiting_s, estimate_wall_s

#: Each request temporarily uses 0.8 kB of the host's disk.
MAX_REQUESTS = 1_000_000
#: Maximum requests per second of k6 with a few cores; limits a closed loop without a known rate.
FASTEST_RATE = 15_000.0
#: k6 writes its rows during the load.
_SECONDS_PER_REQUEST = 2e-6
#: Each connection is a separate interpreter, created before the load.
_SECONDS_PER_CONNECTION = 0.02
#: k6 rejects a shorter load.
_SHORTEST_S = 1.0
#: A primer only makes the server do its initial work.
_PRIMER_RATE = 10.0
_SCRIPT = Path(__file__).with_name("k6_load.js")

SHEET = Capabilities(
    protocols=frozenset(
        {("h1", False), ("h1", True), ("h2", True), ("grpc", False), ("grpc", True)}
    ),
    open_loop=True,
    keepalive_off=True,
    connect_timeout=False,
    warmup="inside",
    body_lengths="partly",
    bytes_in="partly",
    reports_protocol="yes",
    percentile_errors=PercentileErrors(
        p50=(2.6, 4.3), p99=(1.8, 92), p99_9=(39, 130), p99_with_pauses=190
    ),
    caveats=(
        "A connection is a virtual user with one request at a time. With a rate, k6 sends on "
        "time while a connection is free, and skips requests that are due while all are busy. "
        "These count as the error not_sent. Use more connections than concurrent requests.",
        "With a rate, latency counts from when a request was due, so it includes k6's own "
        "delay. It does not include a delay that all requests have in common.",
        "In a closed loop k6 itself needs about 0.05 ms between two requests of a connection, "
        "and pauses for 50 ms after a request without a response.",
        "Times include connecting if a request had to connect; over gRPC they do not.",
        "The timeout of a request includes connecting.",
        "Body bytes come from content-length: they are unknown for responses without it, and "
        "over gRPC.",
        "gRPC: only calls with one message and one response.",
        "The job's certificates are trusted through SSL_CERT_FILE, which k6 supports on Linux "
        "only.",
        f"At most {MAX_REQUESTS:,} requests: each temporarily uses 0.8 kB of the host's disk.",
    ),
)


class K6:
    """The adapter of k6."""

    name = "k6"
    reader = "k6"
    sheet = SHEET
    #: The oldest tested version.
    minimum_version = (1, 8, 0)

    def problems(self, spec: LoadSpec) -> list[Problem]:
        """Return all reasons why k6 cannot create this load; empty if it can."""
        problems = [*load_problems(spec), *find_unsupported(self.name, self.sheet, spec)]
        problems += _load_problems(spec)
        return problems if spec.grpc is None else [*problems, *_call_problems(spec.grpc)]

    def invocations(self, spec: LoadSpec, tool_cpus: int) -> tuple[Invocation, ...]:
        """Return the commands to start, in order. The last one measures.

        With a duration, the warm-up is the beginning of the same load, because rows have times.
        With a number of requests it is a separate load before.
        """
        primers = (_build_primer(spec, tool_cpus),) if spec.primer_s > 0 else ()
        if spec.duration_s is not None:
            return (*primers, _measure(spec, tool_cpus, spec.warmup_s))
        warmups = (_build_warmup(spec, tool_cpus),) if spec.warmup_s > 0 else ()
        return (*primers, *warmups, _measure(spec, tool_cpus, 0.0))

    def files(self, spec: LoadSpec) -> dict[str, str]:
        """Return the script, which never changes, and the request as its input data."""
        return {
            "load.js": _SCRIPT.read_text(encoding="utf-8"),
            "load.json": json.dumps(_request(spec)),
            # Otherwise k6 would use the options of the host's user.
            "k6.json": "{}",
        }

    def probe(self, _spec: LoadSpec) -> tuple[str, ...] | None:
        """Return None: the agent itself supports all protocols of k6."""
        return None

    def parse(
        self, spec: LoadSpec, report: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading:
        """Return the canonical result of one load from k6's report, the agent's rows and its
        result.

        It is a pure function. Raise ToolOutputError if a part is missing or not valid JSON.
        """
        return build_reading(self.name, spec, read_report(report, rows), rows, result)


def _load_problems(spec: LoadSpec) -> Iterator[Problem]:
    if spec.searching and spec.duration_s is None:
        yield "requests", "k6 needs the duration of each probe of a search: use duration_s"
    elif _estimate_length_s(spec) < _SHORTEST_S:
        where = "requests" if spec.duration_s is None else "duration_s"
        yield (
            where,
            f"k6 takes loads of a second or more, this one has "
            f"{format_seconds(_estimate_length_s(spec))}",
        )
    if spec.rate is not None and spec.rate < 0.001:
        yield "rate", f"{spec.rate:g}: k6 takes 0.001 a second at least"
    expected = _estimate_requests(spec)
    if expected is not None and expected > MAX_REQUESTS:
        where = "requests" if spec.requests is not None else "duration_s"
        yield (
            where,
            f"about {format_count(expected)} requests expected, more than the "
            f"{format_count(MAX_REQUESTS)} that k6 may write down: make it shorter, or set a lower "
            "rate or expected_rate",
        )
    names = Counter(name.lower() for name, _ in spec.headers)
    for place, (name, _) in enumerate(spec.headers):
        if names[name.lower()] > 1:
            yield f"headers[{place}]", f"{name}: k6 can send each name once only"
    if spec.protocol == "grpc" and spec.compression:
        yield "compression", "k6 cannot request a content coding over gRPC"
    if spec.protocol == "grpc" and spec.body is not None:
        yield "body", "over gRPC, use grpc.data instead"


def _estimate_length_s(spec: LoadSpec) -> float:
    """Return the length of the load as far as it is known."""
    if spec.duration_s is not None:
        return spec.warmup_s + spec.duration_s
    return (spec.requests or 0) / spec.rate if spec.rate else math.inf


def _estimate_requests(spec: LoadSpec) -> float | None:
    if spec.requests is not None or spec.duration_s is None:
        return spec.requests
    rate = spec.rate if spec.model == "open" else spec.expected_rate
    return (rate or FASTEST_RATE) * (spec.duration_s + spec.warmup_s)


def _call_problems(call: GrpcCall) -> Iterator[Problem]:
    if not isinstance(call.data, Mapping):
        yield "grpc.data", "several messages: k6 sends one in a call"


def _measure(spec: LoadSpec, tool_cpus: int, warmup_s: float) -> Invocation:
    limit_s = estimate_wall_s(spec, warmup_s, _SECONDS_PER_REQUEST)
    return Invocation(
        argv=_build_argv(spec, _build_scenario(spec, warmup_s), keeps_rows=True),
        kind="measure",
        wall_limit_s=limit_s + _SECONDS_PER_CONNECTION * spec.connections,
        warmup_s=warmup_s,
        env=_build_env(spec, tool_cpus),
    )


def _build_warmup(spec: LoadSpec, tool_cpus: int) -> Invocation:
    return _build_short(spec, spec.warmup_s, tool_cpus, "warmup")


def _build_primer(spec: LoadSpec, tool_cpus: int) -> Invocation:
    gentle = replace(spec, model="open", rate=_PRIMER_RATE, searching=False, connections=1)
    return _build_short(gentle, spec.primer_s, tool_cpus, "primer")


def _build_short(
    spec: LoadSpec, seconds: float, tool_cpus: int, kind: Literal["warmup", "primer"]
) -> Invocation:
    length_s = max(seconds, _SHORTEST_S)
    spec = replace(spec, requests=None, duration_s=length_s)
    starting_s = _SECONDS_PER_CONNECTION * spec.connections
    return Invocation(
        argv=_build_argv(spec, _build_scenario(spec, 0.0), keeps_rows=False),
        kind=kind,
        wall_limit_s=length_s + estimate_waiting_s(spec) + starting_s,
        env=_build_env(spec, tool_cpus),
    )


def _build_scenario(spec: LoadSpec, warmup_s: float) -> dict[str, Any]:
    """Return k6's scenario without its rate, which the script adds."""
    graceful = {"gracefulStop": _format_ms(spec.request_timeout_s + spec.connect_timeout_s)}
    if spec.rate is not None:
        users = {"preAllocatedVUs": spec.connections, "maxVUs": spec.connections}
        length = {"duration": _format_ms(_open_s(spec, warmup_s))}
        return {"executor": "constant-arrival-rate", **users, **length, **graceful}
    if spec.duration_s is not None:
        length = {"duration": _format_ms(warmup_s + spec.duration_s)}
        return {"executor": "constant-vus", "vus": spec.connections, **length, **graceful}
    return {
        "executor": "shared-iterations",
        "vus": spec.connections,
        "iterations": spec.requests,
        "maxDuration": _format_ms(max(estimate_counted_s(spec), _SHORTEST_S)),
        **graceful,
    }


def _open_s(spec: LoadSpec, warmup_s: float) -> float:
    if spec.duration_s is not None:
        return warmup_s + spec.duration_s
    assert spec.requests is not None
    assert spec.rate is not None
    # The last request is due half an interval before the end, and none after it.
    return (spec.requests - 0.5) / spec.rate


def _build_argv(spec: LoadSpec, shape: Mapping[str, Any], *, keeps_rows: bool) -> tuple[str, ...]:
    argv = ["{tool}", "run", "--quiet", "--no-color", "--config", "{trial_dir}/k6.json"]
    # Its control server would use a port of the host.
    argv += ["--address=", "--include-system-env-vars=false"]
    if keeps_rows:
        argv += ["--out", "csv"]
    target = "{address}:{port}"
    given = {
        "TARGET": target if spec.protocol == "grpc" else f"{spec.scheme}://{target}",
        "OUT": "{out}",
        "SHAPE": json.dumps(shape),
        "RATE": "" if spec.rate is None else spec.rate_text,
    }
    if spec.grpc is not None:
        given["TREE"] = "{tree}"
    for name, value in given.items():
        argv += ["-e", f"{name}={value}"]
    return (*argv, "{trial_dir}/load.js")


def _build_env(spec: LoadSpec, tool_cpus: int) -> dict[str, str]:
    env = {
        "GOMAXPROCS": str(tool_cpus),
        "K6_CSV_FILENAME": "{rows}",
        "K6_CSV_TIME_FORMAT": "unix_nano",
        # Otherwise k6 would download another k6 and report its use to its maker.
        "K6_AUTO_EXTENSION_RESOLUTION": "false",
        "K6_NO_USAGE_REPORT": "true",
        "NO_PROXY": "*",
        "no_proxy": "*",
    }
    if spec.tls:
        env["SSL_CERT_FILE"] = "{ca}"
    if spec.protocol == "h1":
        # Over TLS it would use HTTP/2 wherever the server offers it.
        env["GODEBUG"] = "http2client=0"
    return env


def _request(spec: LoadSpec) -> dict[str, Any]:
    call = spec.grpc
    return {
        "method": spec.method,
        "path": spec.path,
        "headers": _build_headers(spec),
        "body": spec.body,
        "timeout_ms": round(spec.request_timeout_s * 1000),
        "connect_timeout_ms": round(spec.connect_timeout_s * 1000),
        "keepalive": spec.keepalive,
        "tls": spec.tls,
        "grpc": call
        and {
            "method": call.method,
            "proto": call.proto,
            "import_paths": list(call.import_paths),
            "data": call.data,
        },
    }


def _build_headers(spec: LoadSpec) -> dict[str, str]:
    """Return the headers; over HTTP always with accept-encoding, as with all tools."""
    own = dict(spec.headers)
    if spec.protocol == "grpc" or "accept-encoding" in {name.lower() for name in own}:
        return own
    codings = ", ".join(spec.compression) if spec.compression else "identity"
    return {"accept-encoding": codings, **own}


def _format_ms(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"
