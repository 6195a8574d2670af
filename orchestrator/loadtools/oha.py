"""oha: its argv, and back from what it leaves behind. Flags as of 1.16; 1.14 is the oldest fit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from orchestrator.loadtools.capabilities import unsupported
from orchestrator.loadtools.model import (
    Capabilities,
    Invocation,
    LoadSpec,
    Problem,
    TrialReading,
)
from orchestrator.loadtools.oha_output import report_of
from orchestrator.loadtools.problems import expected_rows, load_problems
from orchestrator.loadtools.reading import reading_of

#: Start, connect, write and end of the tool, beside the load itself.
_SLACK_S = 10.0
#: oha writes its rows after the run.
_SECONDS_PER_ROW = 7e-6
#: A count of requests without a guess of the rate gets this long at least.
_UNKNOWN_LIMIT_S = 600.0
_SLOWEST_RATE = 1_000.0
#: A QUIC connection without a rate is waited for until it has been idle for so long.
_QUIC_IDLE_S = 40.0
#: A primer only wakes the server up.
_PRIMER_RATE = 10.0
_PROBE_RATE = 1_000.0
#: Together with -n it keeps oha 1.16 from ever ending over HTTP/3.
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
    caveats=(
        "Latency is the time from sending the request to the end of the response. Over HTTP/1.1 "
        "the first request of a connection includes connecting, over HTTP/2 and HTTP/3 it does "
        "not. The warm-up excludes these requests.",
        "Errors have no time, so errors of the warm-up are counted too.",
        "HTTP/3 is experimental in oha and needs a build with that feature. Without a rate, oha "
        "waits at the end until its connections have timed out, usually 30 s.",
    ),
)


class Oha:
    """The adapter of oha."""

    name = "oha"
    reader = "oha"
    sheet = SHEET
    #: 1.6 to 1.13 invert --latency-correction where -n and -q meet.
    minimum_version = (1, 14, 0)

    def problems(self, spec: LoadSpec) -> list[Problem]:
        """All that forbids this load with oha; empty where it can be run."""
        found = [*load_problems(spec), *unsupported(self.name, self.sheet, spec)]
        if spec.protocol == "h3" and spec.rate is not None and spec.requests is not None:
            found.append(("requests", "oha does not end over HTTP/3 at a rate: give duration_s"))
        return found

    def invocations(self, spec: LoadSpec, tool_cpus: int) -> tuple[Invocation, ...]:
        """What to start, in order. The last one measures.

        With a duration the warm-up is the beginning of the one load; with a count of requests it
        is a load of its own before, because oha cannot say which of n requests to leave out.
        """
        primers = (_primer(spec, tool_cpus),) if spec.primer_s > 0 else ()
        if spec.duration_s is not None:
            return (*primers, _measure(spec, tool_cpus, warmup_s=spec.warmup_s))
        warmups = (_warmup(spec, tool_cpus),) if spec.warmup_s > 0 else ()
        return (*primers, *warmups, _measure(spec, tool_cpus, warmup_s=0.0))

    def files(self, spec: LoadSpec) -> dict[str, str]:
        return {_BODY: spec.body} if _is_long(spec.body) else {}

    def probe(self, spec: LoadSpec) -> tuple[str, ...] | None:
        """The argv that asks once, for protocols that nobody but the tool speaks."""
        if spec.protocol != "h3":
            return None
        # With a rate oha ends after the answer; else it waits until the connection idles out.
        once = replace(
            spec,
            connections=1,
            streams=1,
            rate=_PROBE_RATE,
            model="open",
            searching=False,
            random_path=None,
        )
        argv = _argv(once, 1, _KEPT, ("-n", "1"))
        return tuple(word for word in argv if word != _CORRECTION)

    def parse(
        self, spec: LoadSpec, report: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading:
        """The canonical result of one load: oha's JSON, the agent's reduced rows, its result.

        Pure and replayable. Raises ToolOutputError where a part is missing or no JSON.
        """
        return reading_of(self.name, spec, report_of(report, rows), rows, result)


def _endless(spec: LoadSpec) -> list[Problem]:
    """oha 1.16 never ends where these three meet."""
    if spec.protocol != "h3" or spec.rate is None or spec.requests is None:
        return []
    return [("requests", "oha cannot end a number of requests at a rate over h3: use duration_s")]


_KEPT = ("--output-format", "json", "-o", "{out}", "--db-url", "{rows}")


def _measure(spec: LoadSpec, tool_cpus: int, *, warmup_s: float) -> Invocation:
    amount: tuple[str, ...]
    if spec.duration_s is not None:
        # Without -w what is in flight at the end is cut off, and the slowest with it.
        amount = ("-z", _duration(warmup_s + spec.duration_s), "-w")
    else:
        amount = ("-n", str(spec.requests))
    return Invocation(
        argv=_argv(spec, tool_cpus, _KEPT, amount),
        kind="measure",
        wall_limit_s=_wall_limit_s(spec, warmup_s),
        warmup_s=warmup_s,
    )


def _warmup(spec: LoadSpec, tool_cpus: int) -> Invocation:
    amount = ("-z", _duration(spec.warmup_s), "-w")
    return Invocation(
        argv=_argv(spec, tool_cpus, ("--output-format", "quiet"), amount),
        kind="warmup",
        wall_limit_s=spec.warmup_s + _waiting_s(spec) + _SLACK_S,
    )


def _primer(spec: LoadSpec, tool_cpus: int) -> Invocation:
    """A few requests a second, so that what is made on first use is made before the warm-up."""
    gentle = replace(spec, model="open", rate=_PRIMER_RATE, searching=False, connections=1)
    amount = ("-z", _duration(spec.primer_s), "-w")
    return Invocation(
        argv=_argv(gentle, tool_cpus, ("--output-format", "quiet"), amount),
        kind="primer",
        wall_limit_s=spec.primer_s + _waiting_s(gentle) + _SLACK_S,
    )


def _argv(
    spec: LoadSpec, tool_cpus: int, kept: Sequence[str], amount: Sequence[str]
) -> tuple[str, ...]:
    argv = ["{tool}", "--no-tui", "--no-color", *kept]
    # It would start a thread for each core of the machine, whatever its affinity.
    argv += ["--worker-threads", str(tool_cpus)]
    # -t always: -w with a server that froze waits for ever.
    argv += ["-t", _duration(spec.request_timeout_s)]
    argv += ["--connect-timeout", _duration(spec.connect_timeout_s)]
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
        # Glued with =, or a body that begins with a dash would be an option.
        argv.append(f"-d={spec.body}")
    for name, value in _headers(spec):
        argv += ["-H", f"{name}: {value}"]
    target = f"{spec.scheme}://{{address}}:{{port}}"
    if spec.random_path is not None:
        # oha takes the dots of a URL literally by itself.
        return (*argv, "--rand-regex-url", target + spec.random_path)
    return (*argv, target + spec.path)


_PROTOCOLS: Mapping[str, tuple[str, ...]] = {
    "h1": (),
    "h2": ("--http2",),
    "h3": ("--http-version", "3"),
}


def _is_long(body: str | None) -> TypeGuard[str]:
    """Too long to be read among the arguments of a command."""
    return body is not None and len(body) > _LONGEST_ARGUMENT


def _headers(spec: LoadSpec) -> list[tuple[str, str]]:
    """The headers, always with accept-encoding: oha's own default asks for every coding."""
    if any(name.lower() == "accept-encoding" for name, _ in spec.headers):
        return list(spec.headers)
    codings = ", ".join(spec.compression) if spec.compression else "identity"
    return [("accept-encoding", codings), *spec.headers]


def _duration(seconds: float) -> str:
    """oha takes whole numbers with a unit only."""
    return f"{max(1, round(seconds * 1000))}ms"


def _wall_limit_s(spec: LoadSpec, warmup_s: float) -> float:
    rows = expected_rows(spec) or 0.0
    loading = warmup_s + spec.duration_s if spec.duration_s is not None else _counted_s(spec)
    return loading + _waiting_s(spec) + _SLACK_S + _SECONDS_PER_ROW * rows


def _waiting_s(spec: LoadSpec) -> float:
    """How long a load may go on after its last request."""
    idle = _QUIC_IDLE_S if spec.protocol == "h3" and spec.rate is None else 0.0
    return spec.request_timeout_s + spec.connect_timeout_s + idle


def _counted_s(spec: LoadSpec) -> float:
    """Seconds that a count of requests may take; three times what a known rate needs."""
    requests = spec.requests or 0
    rate = spec.rate or spec.expected_rate
    if rate:
        return 3 * requests / rate
    all_time_out = requests * spec.request_timeout_s / spec.at_once
    return max(min(all_time_out, _UNKNOWN_LIMIT_S), requests / _SLOWEST_RATE)
