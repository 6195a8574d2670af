"""oha: its arguments, and the reading from its output. Flags as of 1.16; oldest version 1.14."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from orchestrator.loadtools.model import (
    Capabilities,
    Invocation,
    LoadSpec,
    PercentileErrors,
    Problem,
    TrialReading,
)
from orchestrator.loadtools.oha_output import read_report
from orchestrator.loadtools.problems import find_unsupported, load_problems
from orchestrator.loadtools.reading import build_reading
from orchestrator.loadtools.wall import estimate_waiting_s, estimate_wall_s

#: oha writes its rows after the load.
_SECONDS_PER_ROW = 7e-6
#: A primer only makes the server do its initial work.
_PRIMER_RATE = 10.0
_PROBE_RATE = 1_000.0
#: With -n it keeps oha 1.16 from ending over HTTP/3.
_CORRECTION = "--latency-correction"
_BODY = "body.bin"
_LONGEST_ARGUMENT = 500

SHEET = Capabilities(
    protocols=frozenset({("h1", False), ("h1", True), ("h2", False), ("h2", True), ("h3", True)}),
    streams=True,
    open_loop=True,
    random_path=True,
    keepalive_off=True,
    warmup="inside",
    body_lengths="yes",
    percentile_errors=PercentileErrors(
        p50=(0.7, 2.3), p99=(0.3, 3.9), p99_9=(0.4, 1.1), p99_with_pauses=7.1
    ),
    caveats=(
        "Latency is the time from sending the request to the end of the response. Over HTTP/1.1 "
        "the first request of a connection includes connecting, over HTTP/2 and HTTP/3 it does "
        "not. The warm-up excludes these requests.",
        "Errors have no time, so errors of the warm-up are counted too.",
        "HTTP/3 is experimental in oha and needs a build with that feature. Without a rate, oha "
        "waits at the end until its connections have been idle for the server's timeout, usually "
        "30 s (`quic_idle_timeout_s`). The agent cannot "
        "sample answers over HTTP/3.",
    ),
)


class Oha:
    """The adapter of oha."""

    name = "oha"
    reader = "oha"
    sheet = SHEET
    #: 1.6 to 1.13 invert --latency-correction if -n and -q are combined.
    minimum_version = (1, 14, 0)

    def problems(self, spec: LoadSpec) -> list[Problem]:
        """Return all reasons why oha cannot create this load; empty if it can."""
        problems = [*load_problems(spec), *find_unsupported(self.name, self.sheet, spec)]
        if spec.protocol == "h3" and spec.rate is not None and spec.requests is not None:
            problems.append(("requests", "oha does not end over HTTP/3 at a rate: give duration_s"))
        return problems

    def invocations(self, spec: LoadSpec, tool_cpus: int) -> tuple[Invocation, ...]:
        """Return the commands to start, in order. The last one measures.

        With a duration, the warm-up is the beginning of the same load. With a number of requests it
        is a separate load before, because oha cannot exclude the first of n requests.
        """
        primers = (_build_primer(spec, tool_cpus),) if spec.primer_s > 0 else ()
        if spec.duration_s is not None:
            return (*primers, _measure(spec, tool_cpus, warmup_s=spec.warmup_s))
        warmups = (_build_warmup(spec, tool_cpus),) if spec.warmup_s > 0 else ()
        return (*primers, *warmups, _measure(spec, tool_cpus, warmup_s=0.0))

    def files(self, spec: LoadSpec) -> dict[str, str]:
        return {_BODY: spec.body} if _is_long(spec.body) else {}

    def probe(self, spec: LoadSpec) -> tuple[str, ...] | None:
        """Return the arguments for one request, for protocols that only the tool supports."""
        if spec.protocol != "h3":
            return None
        # With a rate oha ends after the response; otherwise it waits until the connection times
        # out.
        once = replace(
            spec,
            connections=1,
            streams=1,
            rate=_PROBE_RATE,
            model="open",
            searching=False,
            random_path=None,
        )
        argv = _build_argv(once, 1, _KEPT, ("-n", "1"))
        return tuple(word for word in argv if word != _CORRECTION)

    def parse(
        self, spec: LoadSpec, report: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading:
        """Return the canonical result of one load from oha's JSON, the agent's rows and its result.

        It is a pure function. Raise ToolOutputError if a part is missing or not valid JSON.
        """
        return build_reading(self.name, spec, read_report(report, rows), rows, result)


def _find_endless(spec: LoadSpec) -> list[Problem]:
    """Return the problem if the combination keeps oha 1.16 from ending."""
    if spec.protocol != "h3" or spec.rate is None or spec.requests is None:
        return []
    return [("requests", "oha cannot end a number of requests at a rate over h3: use duration_s")]


_KEPT = ("--output-format", "json", "-o", "{out}", "--db-url", "{rows}")


def _measure(spec: LoadSpec, tool_cpus: int, *, warmup_s: float) -> Invocation:
    amount: tuple[str, ...]
    if spec.duration_s is not None:
        # Without -w, requests in flight at the end are cut off, including the slowest.
        amount = ("-z", _format_duration(warmup_s + spec.duration_s), "-w")
    else:
        amount = ("-n", str(spec.requests))
    return Invocation(
        argv=_build_argv(spec, tool_cpus, _KEPT, amount),
        kind="measure",
        wall_limit_s=estimate_wall_s(spec, warmup_s, _SECONDS_PER_ROW),
        warmup_s=warmup_s,
    )


def _build_warmup(spec: LoadSpec, tool_cpus: int) -> Invocation:
    amount = ("-z", _format_duration(spec.warmup_s), "-w")
    return Invocation(
        argv=_build_argv(spec, tool_cpus, ("--output-format", "quiet"), amount),
        kind="warmup",
        wall_limit_s=spec.warmup_s + estimate_waiting_s(spec),
    )


def _build_primer(spec: LoadSpec, tool_cpus: int) -> Invocation:
    """Return a load of a few requests per second, for initial work before the warm-up."""
    gentle = replace(spec, model="open", rate=_PRIMER_RATE, searching=False, connections=1)
    amount = ("-z", _format_duration(spec.primer_s), "-w")
    return Invocation(
        argv=_build_argv(gentle, tool_cpus, ("--output-format", "quiet"), amount),
        kind="primer",
        wall_limit_s=spec.primer_s + estimate_waiting_s(gentle),
    )


def _build_argv(
    spec: LoadSpec, tool_cpus: int, kept: Sequence[str], amount: Sequence[str]
) -> tuple[str, ...]:
    argv = ["{tool}", "--no-tui", "--no-color", *kept]
    # By default it starts a thread for each core of the machine, regardless of its affinity.
    argv += ["--worker-threads", str(tool_cpus)]
    # Always set -t: with -w, oha would wait without limit for a server that hangs.
    argv += ["-t", _format_duration(spec.request_timeout_s)]
    argv += ["--connect-timeout", _format_duration(spec.connect_timeout_s)]
    argv += ["-c", str(spec.connections), *amount]
    if spec.streams > 1:
        argv += ["-p", str(spec.streams)]
    if spec.rate is not None:
        argv += ["-q", spec.rate_text, _CORRECTION]
    argv += _PROTOCOLS[spec.protocol]
    if spec.tls:
        argv += ["--cacert", "{ca}"]
    if not spec.keepalive:
        argv.append("--disable-keepalive")
    argv += ["-m", spec.method]
    if _is_long(spec.body):
        argv += ["-D", f"{{trial_dir}}/{_BODY}"]
    elif spec.body is not None:
        # Joined with =, because a body that starts with a dash would be an option.
        argv.append(f"-d={spec.body}")
    for name, value in _list_headers(spec):
        argv += ["-H", f"{name}: {value}"]
    target = f"{spec.scheme}://{{address}}:{{port}}"
    if spec.random_path is not None:
        # oha itself takes the dots of a URL literally.
        return (*argv, "--rand-regex-url", target + spec.random_path)
    return (*argv, target + spec.path)


_PROTOCOLS: Mapping[str, tuple[str, ...]] = {
    "h1": (),
    "h2": ("--http2",),
    "h3": ("--http-version", "3"),
}


def _is_long(body: str | None) -> TypeGuard[str]:
    """Return whether the body is too long for an argument that people read."""
    return body is not None and len(body) > _LONGEST_ARGUMENT


def _list_headers(spec: LoadSpec) -> list[tuple[str, str]]:
    """Return the headers, always with accept-encoding: oha's default requests every coding."""
    if any(name.lower() == "accept-encoding" for name, _ in spec.headers):
        return list(spec.headers)
    codings = ", ".join(spec.compression) if spec.compression else "identity"
    return [("accept-encoding", codings), *spec.headers]


def _format_duration(seconds: float) -> str:
    """oha accepts only whole numbers with a unit."""
    return f"{max(1, round(seconds * 1000))}ms"
