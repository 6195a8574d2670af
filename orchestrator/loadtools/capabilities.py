"""Loads that a tool does not support by its sheet; they are rejected before anything runs."""

from collections.abc import Iterator

from orchestrator.loadtools.model import Capabilities, LoadSpec, Problem, Protocol

PROTOCOL_TITLES: dict[tuple[Protocol, bool], str] = {
    ("h1", False): "HTTP/1.1",
    ("h1", True): "HTTP/1.1 over TLS",
    ("h2", False): "h2c (HTTP/2 without TLS)",
    ("h2", True): "HTTP/2 over TLS",
    ("h3", True): "HTTP/3",
    ("grpc", False): "gRPC",
    ("grpc", True): "gRPC over TLS",
}


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
