"""h2load of nghttp2: its arguments, and the reading from its report and log. Flags as of 1.52."""

from collections.abc import Mapping
from typing import Any, Literal

from orchestrator.loadtools.h2load_output import read_report
from orchestrator.loadtools.model import (
    Capabilities,
    Invocation,
    LoadSpec,
    PercentileErrors,
    Problem,
    TrialReading,
)
from orchestrator.loadtools.problems import find_unsupported, load_problems
from orchestrator.loadtools.reading import build_reading

#: Overhead of the tool outside the load: start, connect, write and end.
_SLACK_S = 15.0
#: The assumed rate of a number of requests without a known rate.
_SLOWEST_RATE = 500.0
#: A primer only makes the server do its initial work.
_PRIMER_RATE = 10
_BODY = "body.bin"

SHEET = Capabilities(
    protocols=frozenset({("h1", False), ("h1", True), ("h2", False), ("h2", True)}),
    streams=True,
    keepalive_off=True,
    request_timeout=False,
    connect_timeout=False,
    warmup="apart",
    distribution="rows",
    errors="partly",
    reports_protocol="yes",
    verifies_certificate=False,
    percentile_errors=PercentileErrors(
        p50=(0.58, 1.6), p99=(0.24, 3.4), p99_9=(-9.8, 0.58), p99_with_pauses=7.8
    ),
    caveats=(
        "It has a rate for each connection (--rps), but does not report the delay of a request "
        "that could not be sent on time. Latency counts from when it is sent, so this is not an "
        "open loop, and rate is rejected.",
        "With a duration it does not replace closed connections and does not report the "
        "requests that were lost with them. Unfinished requests at the end are cut off. With a "
        "count of requests, all requests without a response are errors.",
        "With a count of requests, a connection without activity for request_timeout_s is "
        "closed, and its requests count as timeouts. With a duration h2load 1.52 would crash in "
        "this case, so there is no timeout. Connecting has no limit.",
        "Latency begins when the request is written. It includes neither connecting nor waiting "
        "for the server's limit of streams.",
        "It writes one line per request during the load, about 1 µs of its CPU each.",
        "Its body bytes are those of the whole load; the lengths of single responses are unknown.",
        "It does not verify certificates.",
    ),
)


class H2load:
    """The adapter of h2load."""

    name = "h2load"
    reader = "h2load"
    sheet = SHEET
    #: The log of requests was added in 1.43; this is the oldest tested version.
    minimum_version = (1, 52, 0)

    def problems(self, spec: LoadSpec) -> list[Problem]:
        """Return all reasons why h2load cannot create this load; empty if it can."""
        return [
            *load_problems(spec),
            *find_unsupported(self.name, self.sheet, spec),
            *_find_own_problems(spec),
        ]

    def invocations(self, spec: LoadSpec, tool_cpus: int) -> tuple[Invocation, ...]:
        """Return the commands to start, in order. The last one measures.

        The warm-up is a separate start. h2load's own warm-up is not in its log, so the server's CPU
        time could not be divided by all responses.
        """
        threads = min(tool_cpus, spec.connections)
        crowd = ("-t", str(threads), "-c", str(spec.connections))
        starts = []
        if spec.primer_s > 0:
            gentle = ("-t", "1", "-c", "1", "--rps", str(_PRIMER_RATE))
            starts.append(_build_timed(spec, "primer", spec.primer_s, gentle))
        if spec.warmup_s > 0:
            starts.append(_build_timed(spec, "warmup", spec.warmup_s, crowd))
        kept = (*crowd, "--log-file={rows}")
        if spec.duration_s is not None:
            return (*starts, _build_timed(spec, "measure", spec.duration_s, kept))
        return (*starts, _build_counted(spec, kept))

    def files(self, spec: LoadSpec) -> dict[str, str]:
        return {_BODY: spec.body} if spec.body else {}

    def probe(self, _spec: LoadSpec) -> None:
        return None

    def parse(
        self, spec: LoadSpec, report: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading:
        """Return the canonical result of one load; ToolOutputError if the report is not valid."""
        tool_report, body_bytes = read_report(spec, report, rows)
        return build_reading(self.name, spec, tool_report, {**rows, "bytes": body_bytes}, result)


def _build_timed(
    spec: LoadSpec,
    kind: Literal["primer", "warmup", "measure"],
    seconds: float,
    flags: tuple[str, ...],
) -> Invocation:
    return Invocation(
        argv=("{tool}", *flags, "-D", _format_duration(seconds), *_request(spec)),
        kind=kind,
        wall_limit_s=seconds + _SLACK_S,
    )


def _build_counted(spec: LoadSpec, flags: tuple[str, ...]) -> Invocation:
    requests = spec.requests or 0
    # Without -N it would wait without limit for a server that hangs.
    amount = ("-n", str(requests), "-N", _format_duration(spec.request_timeout_s))
    loading_s = 3 * requests / (spec.expected_rate or _SLOWEST_RATE)
    return Invocation(
        argv=("{tool}", *flags, *amount, *_request(spec)),
        kind="measure",
        wall_limit_s=loading_s + spec.request_timeout_s + _SLACK_S,
    )


def _request(spec: LoadSpec) -> tuple[str, ...]:
    argv = ["-m", str(spec.streams)]
    if spec.protocol == "h1":
        argv.append("--h1")
    elif spec.tls:
        argv.append("--npn-list=h2")
    else:
        argv.append("--no-tls-proto=h2c")
    if spec.body:
        argv += ["-d", f"{{trial_dir}}/{_BODY}"]
    for name, value in _list_headers(spec):
        argv += ["-H", f"{name}: {value}"]
    return (*argv, f"{spec.scheme}://{{address}}:{{port}}{spec.path}")


def _list_headers(spec: LoadSpec) -> list[tuple[str, str]]:
    """Return the headers, including those of h2load, under the names that override them."""
    headers = [
        (":authority" if name.lower() == "host" else name, value) for name, value in spec.headers
    ]
    if all(name.lower() != "accept-encoding" for name, _ in headers):
        codings = ", ".join(spec.compression) if spec.compression else "identity"
        headers.append(("accept-encoding", codings))
    if not spec.keepalive:
        headers.append(("connection", "close"))
    return [(":method", spec.method), *headers]


def _format_duration(seconds: float) -> str:
    """h2load accepts only whole numbers with a unit."""
    return f"{max(1, round(seconds * 1000))}ms"


def _find_own_problems(spec: LoadSpec) -> list[Problem]:
    problems = []
    if spec.method == "HEAD" and spec.protocol == "h1":
        text = "h2load cannot send HEAD over HTTP/1.1: it would wait for the body without end"
        problems.append(("method", text))
    for place, (name, value) in enumerate(spec.headers):
        if name.lower() == "content-length":
            problems.append((f"headers[{place}]", "h2load sets content-length itself"))
        if not value:
            problems.append((f"headers[{place}]", f"{name}: h2load cannot send an empty header"))
    return problems
