"""wrk: its arguments and Lua script, and the reading from the script's report. As of 4.1.0."""

from collections.abc import Mapping
from typing import Any, Literal

from orchestrator.loadtools.model import (
    GARBAGE,
    Capabilities,
    Invocation,
    LoadSpec,
    PercentileErrors,
    Problem,
    ToolOutputError,
    TrialReading,
)
from orchestrator.loadtools.problems import find_unsupported, load_problems
from orchestrator.loadtools.reading import build_reading
from orchestrator.loadtools.wrk_output import read_report, with_status_errors
from orchestrator.loadtools.wrk_script import (
    CONNECTIONS,
    LOAD,
    OUT,
    PRIMER,
    build_primer,
    load_script,
)

#: Overhead of the tool outside the load: start, end, and writing its report.
_SLACK_S = 20.0

SHEET = Capabilities(
    protocols=frozenset({("h1", False), ("h1", True)}),
    by_count=False,
    keepalive_off=True,
    request_timeout=False,
    connect_timeout=False,
    warmup="apart",
    distribution="buckets",
    status_codes="partly",
    errors="partly",
    bytes_in="partly",
    verifies_certificate=False,
    percentile_errors=PercentileErrors(
        p50=(0.41, 1.2), p99=(0.22, 3.1), p99_9=(0.26, 3.6), p99_with_pauses=10
    ),
    caveats=(
        "wrk adds artificial latencies, one for each mean interval during a slow response. "
        "Pitwall removes them exactly: the number of the remaining latencies must equal the "
        "number of responses, or the trial is invalid.",
        "wrk reports how many responses had a status above 399, but not which ones. If there "
        "are any, the latencies of good responses cannot be separated and none is shown. "
        "Counting each status in Lua would cost 5 to 12 % of its speed.",
        "A status from 200 to 399 that the definition does not expect is only detected in the "
        "requests before and after the load.",
        "A request without a response is not counted. wrk waits for a response that takes "
        "longer than request_timeout_s and counts it as a timeout. Connecting has no limit.",
        "Unfinished requests at the end of the load are not counted. The load ends up to 0.1 s "
        "late; the rate uses the actual duration.",
        "Latency begins when the request is written to an open connection, so without keepalive "
        "it does not include connecting.",
        "Its bytes include headers. It reports no times, so there are no slices.",
        "It does not verify certificates.",
        "All of its threads have the same number of connections. If the number of connections "
        "is not a multiple of the load tool's CPUs, it uses fewer threads.",
    ),
)


class Wrk:
    """The adapter of wrk."""

    name = "wrk"
    reader = "wrk"
    sheet = SHEET
    #: The script depends on the memory layout and the latency correction of 4.1.
    minimum_version = (4, 1, 0)

    def problems(self, spec: LoadSpec) -> list[Problem]:
        """Return all reasons why wrk cannot create this load; empty if it can."""
        return [
            *load_problems(spec),
            *find_unsupported(self.name, self.sheet, spec),
            *_find_own_problems(spec),
        ]

    def invocations(self, spec: LoadSpec, tool_cpus: int) -> tuple[Invocation, ...]:
        """Return the commands to start, in order. The last one measures."""
        threads = choose_threads(spec, tool_cpus)
        starts = []
        if spec.primer_s > 0:
            starts.append(_start(spec, "primer", spec.primer_s, 1, 1))
        if spec.warmup_s > 0:
            starts.append(_start(spec, "warmup", spec.warmup_s, spec.connections, threads))
        measured_s = spec.duration_s or 0.0
        return (*starts, _start(spec, "measure", measured_s, spec.connections, threads))

    def files(self, spec: LoadSpec) -> dict[str, str]:
        scripts = {LOAD: load_script(spec)}
        return {**scripts, PRIMER: build_primer(spec)} if spec.primer_s > 0 else scripts

    def probe(self, _spec: LoadSpec) -> None:
        return None

    def parse(
        self, spec: LoadSpec, report: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading:
        """Return the canonical result of one load; ToolOutputError if the report is not valid."""
        wrk, tool_report = read_report(report, rows)
        try:
            own = {**result, "tool_cpus": choose_threads(spec, int(result.get("tool_cpus") or 1))}
        except GARBAGE as error:
            raise ToolOutputError(f"result.json: {type(error).__name__}: {error}") from error
        return with_status_errors(build_reading(self.name, spec, tool_report, rows, own), wrk)


def choose_threads(spec: LoadSpec, tool_cpus: int) -> int:
    """Return the most threads that share the connections evenly: wrk would ignore the remainder."""
    most = min(tool_cpus, spec.connections)
    return next(n for n in range(most, 0, -1) if spec.connections % n == 0)


def _start(
    spec: LoadSpec,
    kind: Literal["primer", "warmup", "measure"],
    seconds: float,
    connections: int,
    threads: int,
) -> Invocation:
    script = PRIMER if kind == "primer" else LOAD
    return Invocation(
        argv=(
            "{tool}", "-t", str(threads), "-c", str(connections), "-d", f"{seconds:.0f}s",
            "--timeout", f"{spec.request_timeout_s:.0f}s", "-s", f"{{trial_dir}}/{script}",
            f"{spec.scheme}://{{address}}:{{port}}/",
        ),
        kind=kind,
        wall_limit_s=seconds + _SLACK_S,
        env={OUT: "{out}", CONNECTIONS: str(connections)} if kind == "measure" else {},
    )  # fmt: skip


def _find_own_problems(spec: LoadSpec) -> list[Problem]:
    problems = [
        (name, f"{value:g}: wrk takes whole seconds only")
        for name in ("duration_s", "warmup_s", "primer_s", "request_timeout_s")
        if (value := getattr(spec, name)) is not None and value != round(value)
    ]
    if rejected := [each for each in spec.good_statuses if each >= 400]:
        text = f"wrk counts status {rejected[0]} as an error: use oha, h2load or k6"
        problems.append(("expect.status", text))
    if spec.method == "HEAD":
        problems.append(("method", "wrk cannot send HEAD: it would wait for the body without end"))
    return problems
