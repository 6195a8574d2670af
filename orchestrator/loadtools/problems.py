"""Problems of a load with any tool, or with one tool, detected before anything runs."""

import math
import re
from collections.abc import Iterator

from cli.pitwall.units import format_count
from orchestrator.loadtools.model import PROTOCOL_TITLES, Capabilities, LoadSpec, Problem

#: The maximum number of rows (answered requests) of one trial, including its warm-up.
MAX_ROWS = 5_000_000
#: Maximum requests per second of one core; limits a closed loop without a known rate.
FASTEST_RATE = 35_000.0

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~][A-Za-z0-9!#$%&'*+.^_`|~-]*\Z")
_METHOD = re.compile(r"[A-Z]+\Z")
#: Placeholders that the agent replaces inside an argument.
_AGENT_WORDS = re.compile(
    r"\{(python|port|tool|out|rows|trial_dir|tree|installed|bind|address|probe_rate|ca|cert|key"
    r"|files|job_data|commit_data|trial_data)\}"
)


def load_problems(spec: LoadSpec) -> list[Problem]:
    """Return (field, problem with the expectation) for all problems that are known before running.

    If it is empty, a tool that supports the protocol can create the load.
    """
    return [
        *_find_amount_problems(spec),
        *_load_problems(spec),
        *_find_time_problems(spec),
        *_request_problems(spec),
        *_find_protocol_problems(spec),
    ]


def estimate_rows(spec: LoadSpec) -> float | None:
    """Return the maximum number of answered requests of the measured load; None without an end."""
    if spec.requests is not None:
        return float(spec.requests)
    if spec.duration_s is None:
        return None
    rate = spec.rate if spec.model == "open" and spec.rate else spec.expected_rate
    return (rate or FASTEST_RATE) * (spec.duration_s + spec.warmup_s)


def _find_amount_problems(spec: LoadSpec) -> list[Problem]:
    if spec.requests is not None and spec.duration_s is not None:
        return [("requests", "give requests or duration_s, not both")]
    if spec.requests is None and spec.duration_s is None:
        return [("duration_s", "give duration_s or requests: the load has no end")]
    if spec.requests is not None and spec.requests < 1:
        return [("requests", f"{spec.requests}: expected at least 1")]
    if spec.duration_s is not None and not _is_positive(spec.duration_s):
        return [("duration_s", f"{spec.duration_s}: expected more than 0 seconds")]
    rows = estimate_rows(spec)
    if rows is not None and rows > MAX_ROWS:
        where = "requests" if spec.requests is not None else "duration_s"
        return [
            (
                where,
                f"about {format_count(rows)} requests expected, more than the "
                f"{format_count(MAX_ROWS)} that a trial keeps: make it shorter, or set a lower "
                "rate or expected_rate",
            )
        ]
    return []


def _load_problems(spec: LoadSpec) -> list[Problem]:
    problems = []
    for name in ("connections", "streams"):
        if getattr(spec, name) < 1:
            problems.append((name, f"{getattr(spec, name)}: expected at least 1"))
    if spec.requests is not None and 0 < spec.requests < spec.connections:
        problems.append(("connections", f"more than the {spec.requests} requests to send"))
    if spec.model not in ("closed", "open"):
        problems.append(("model", f"{spec.model!r}: expected closed or open"))
    if spec.model == "open" and spec.rate is None:
        problems.append(("rate", "an open load needs a rate in requests a second"))
    if spec.model == "closed" and spec.rate is not None:
        problems.append(("rate", "a closed load has no rate: set model to open or leave it out"))
    if spec.rate is not None and not _is_positive(spec.rate):
        problems.append(("rate", f"{spec.rate}: expected more than 0 requests a second"))
    if spec.expected_rate is not None and not _is_positive(spec.expected_rate):
        problems.append(("expected_rate", f"{spec.expected_rate}: expected more than 0 a second"))
    return problems


def _find_time_problems(spec: LoadSpec) -> list[Problem]:
    problems = []
    if not math.isfinite(spec.warmup_s) or spec.warmup_s < 0:
        problems.append(("warmup_s", f"{spec.warmup_s}: expected 0 seconds or more"))
    elif spec.duration_s is not None and spec.warmup_s > spec.duration_s > 0:
        problems.append(
            (
                "warmup_s",
                f"{spec.warmup_s}: expected not more than the measured {spec.duration_s} seconds",
            )
        )
    for name in ("request_timeout_s", "connect_timeout_s"):
        value = getattr(spec, name)
        if not _is_positive(value):
            problems.append((name, f"{value}: expected more than 0 seconds"))
    return problems


def _has_known_answer(spec: LoadSpec) -> bool:
    return spec.protocol != "h3" and (spec.random_path is None or spec.path != "/")


def _request_problems(spec: LoadSpec) -> list[Problem]:
    problems = []
    if spec.random_path is not None:
        problems += _find_random_path_problems(spec.random_path)
    if not spec.path.startswith("/"):
        problems.append(("path", f"{spec.path!r}: expected a path that begins with /"))
    if "#" in spec.path or any(mark <= " " or mark == "\x7f" for mark in spec.path):
        problems.append(("path", f"{spec.path!r}: spaces, control characters or # in it"))
    if not _METHOD.match(spec.method):
        problems.append(("method", f"{spec.method!r}: expected capital letters, such as GET"))
    if spec.volatile is not None and not _has_known_answer(spec):
        text = "needs a path, and another protocol than h3: the agent compares the answers itself"
        problems.append(("expect.volatile", text))
    if spec.body is not None and "\x00" in spec.body:
        problems.append(("body", "a NUL character in it"))
    for place, (name, value) in enumerate(spec.headers):
        problems += [(f"headers[{place}]", message) for message in _find_header_faults(name, value)]
    if spec.compression is not None and "accept-encoding" in {n.lower() for n, _ in spec.headers}:
        problems.append(("compression", "also given as the header accept-encoding: keep one"))
    for place, name in enumerate(spec.compression or ()):
        if not _TOKEN.match(name):
            problems.append((f"compression[{place}]", f"{name!r}: expected a coding such as gzip"))
    for where, text in (("path", spec.path), ("body", spec.body or "")):
        problems += [(where, message) for message in _find_agent_words(text)]
    return problems


def _find_random_path_problems(pattern: str) -> list[Problem]:
    if not pattern.startswith("/"):
        return [("random_path", f"{pattern!r}: expected an expression that begins with /")]
    try:
        re.compile(pattern)
    except re.error as error:
        return [("random_path", f"{pattern!r}: not a regular expression: {error}")]
    return [("random_path", message) for message in _find_agent_words(pattern)]


def _find_header_faults(name: str, value: str) -> list[str]:
    faults = _find_agent_words(f"{name}: {value}")
    if not _TOKEN.match(name):
        faults.append(f"{name!r}: not a header name")
    if any(mark in value for mark in "\r\n\x00"):
        faults.append(f"{name}: a line break or NUL in its value")
    return faults


def _find_agent_words(text: str) -> list[str]:
    """Return placeholders of the agent in the text, which the tool would not get."""
    words = sorted({match.group() for match in _AGENT_WORDS.finditer(text)})
    return [f"{word} in it would be replaced on the host: write it another way" for word in words]


def _find_protocol_problems(spec: LoadSpec) -> list[Problem]:
    problems = []
    if spec.protocol == "h3" and not spec.tls:
        problems.append(("tls", "false: HTTP/3 exists over TLS only"))
    if spec.protocol != "h1" and not spec.keepalive:
        problems.append(("keepalive", f"false: connections of {spec.protocol} are always kept"))
    if spec.protocol == "h1" and spec.streams > 1:
        problems.append(
            ("streams", f"{spec.streams}: HTTP/1.1 has one request at a time on a connection")
        )
    if spec.protocol == "grpc" and spec.grpc is None:
        problems.append(("grpc", "name the call: grpc: {call: package.Service/Method, …}"))
    if spec.protocol != "grpc" and spec.grpc is not None:
        problems.append(("grpc", f"the protocol is {spec.protocol}: set it to grpc"))
    return problems


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def find_unsupported(name: str, sheet: Capabilities, spec: LoadSpec) -> list[Problem]:
    """Return (field, what the tool `name` does not support in this load); empty if nothing."""
    return [
        *_check_protocol(name, sheet, spec),
        *_check_load(name, sheet, spec),
        *_check_request(name, sheet, spec),
    ]


def _check_protocol(name: str, sheet: Capabilities, spec: LoadSpec) -> Iterator[Problem]:
    spoken = (spec.protocol, spec.tls)
    if spoken not in sheet.protocols and spoken in PROTOCOL_TITLES:
        known = ", ".join(
            title for each, title in PROTOCOL_TITLES.items() if each in sheet.protocols
        )
        field = "tls" if (spec.protocol, not spec.tls) in sheet.protocols else "protocol"
        yield field, f"{name} does not support {PROTOCOL_TITLES[spoken]}, only {known}"
    if spec.streams > 1 and not sheet.streams:
        yield "streams", f"{name} keeps one request at a time on a connection: use connections"


def _check_load(name: str, sheet: Capabilities, spec: LoadSpec) -> Iterator[Problem]:
    if spec.rate is not None and not sheet.open_loop:
        yield "rate", f"{name} cannot send at a fixed rate: leave rate out"
    if spec.duration_s is not None and not sheet.by_duration:
        yield "duration_s", f"{name} supports only a number of requests"
    if spec.requests is not None and not sheet.by_count:
        yield "requests", f"{name} supports only a duration: use duration_s"


def _check_request(name: str, sheet: Capabilities, spec: LoadSpec) -> Iterator[Problem]:
    if spec.random_path is not None and not sheet.random_path:
        yield "random_path", f"{name} cannot make random paths"
    if spec.method != "GET" and not sheet.methods:
        yield "method", f"{name} cannot send {spec.method}"
    if spec.headers and not sheet.headers:
        yield "headers", f"{name} cannot send custom headers"
    if spec.body is not None and not sheet.body:
        yield "body", f"{name} cannot send a body"
    if not spec.keepalive and not sheet.keepalive_off:
        yield "keepalive", f"{name} always keeps connections open"
    if spec.compression and not sheet.compression:
        yield "compression", f"{name} cannot request a content coding"
