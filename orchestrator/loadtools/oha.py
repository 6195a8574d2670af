"""oha: its argv, and back from what it leaves behind. Flags as of 1.16; 1.14 is the oldest fit."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.loadtools.model import Invocation, LoadSpec, TrialReading
from orchestrator.loadtools.oha_output import read_trial
from orchestrator.loadtools.problems import Problem, expected_rows, load_problems

#: Start, connect, write and end of the tool, beside the load itself.
_SLACK_S = 10.0
#: oha writes its rows after the run.
_SECONDS_PER_ROW = 7e-6
#: A count of requests without a guess of the rate gets this long at least.
_UNKNOWN_LIMIT_S = 600.0
_SLOWEST_RATE = 1_000.0


class Oha:
    """The adapter of oha."""

    name = "oha"
    #: 1.6 to 1.13 invert --latency-correction where -n and -q meet.
    minimum_version = (1, 14, 0)

    def problems(self, spec: LoadSpec) -> list[Problem]:
        """All that forbids this load with oha; empty where it can be run."""
        return [*load_problems(spec), *_unsupported(spec)]

    def invocations(self, spec: LoadSpec, tool_cpus: int) -> tuple[Invocation, ...]:
        """What to start, in order. The last one measures.

        With a duration the warm-up is the beginning of the one load; with a count of requests it
        is a load of its own before, because oha cannot say which of n requests to leave out.
        """
        if spec.duration_s is not None:
            return (_measure(spec, tool_cpus, warmup_s=spec.warmup_s),)
        warmups = (_warmup(spec, tool_cpus),) if spec.warmup_s > 0 else ()
        return (*warmups, _measure(spec, tool_cpus, warmup_s=0.0))

    def parse(
        self, tool_json: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading:
        """The canonical result of oha's JSON, the agent's reduced rows and its result.json.

        Pure and replayable. Raises ToolOutputError where a part is missing or no JSON.
        """
        return read_trial(tool_json, rows, result)


def _unsupported(spec: LoadSpec) -> list[Problem]:
    problems = []
    if spec.protocol != "h1":
        problems.append(("protocol", f"{spec.protocol}: only h1 is offered with oha"))
    if spec.scheme != "http":
        problems.append(("scheme", f"{spec.scheme}: only http is offered with oha"))
    return problems


def _measure(spec: LoadSpec, tool_cpus: int, *, warmup_s: float) -> Invocation:
    amount: tuple[str, ...]
    kept = ("--output-format", "json", "-o", "{out}", "--db-url", "{rows}")
    if spec.duration_s is not None:
        # Without -w what is in flight at the end is cut off, and the slowest with it.
        amount = ("-z", _duration(warmup_s + spec.duration_s), "-w")
    else:
        amount = ("-n", str(spec.requests))
    return Invocation(
        argv=_argv(spec, tool_cpus, kept, amount),
        kind="measure",
        wall_limit_s=_wall_limit_s(spec, warmup_s),
        warmup_s=warmup_s,
    )


def _warmup(spec: LoadSpec, tool_cpus: int) -> Invocation:
    amount = ("-z", _duration(spec.warmup_s), "-w")
    return Invocation(
        argv=_argv(spec, tool_cpus, ("--output-format", "quiet"), amount),
        kind="warmup",
        wall_limit_s=spec.warmup_s + spec.request_timeout_s + spec.connect_timeout_s + _SLACK_S,
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
    if spec.rate is not None:
        argv += ["-q", f"{spec.rate:.15g}", "--latency-correction"]
    if not spec.keepalive:
        argv.append("--disable-keepalive")
    argv += ["-m", spec.method]
    if spec.body is not None:
        # Glued with =, or a body that begins with a dash would be an option.
        argv.append(f"-d={spec.body}")
    for name, value in _headers(spec):
        argv += ["-H", f"{name}: {value}"]
    return (*argv, f"{spec.scheme}://{{address}}:{{port}}{spec.path}")


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
    waiting = spec.request_timeout_s + spec.connect_timeout_s
    return loading + waiting + _SLACK_S + _SECONDS_PER_ROW * rows


def _counted_s(spec: LoadSpec) -> float:
    """Seconds that a count of requests may take; three times what a known rate needs."""
    requests = spec.requests or 0
    rate = spec.rate or spec.expected_rate
    if rate:
        return 3 * requests / rate
    all_time_out = requests * spec.request_timeout_s / spec.connections
    return max(min(all_time_out, _UNKNOWN_LIMIT_S), requests / _SLOWEST_RATE)
