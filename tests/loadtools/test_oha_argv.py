from dataclasses import replace

import pytest

from orchestrator.loadtools.model import GrpcCall, LoadSpec
from orchestrator.loadtools.registry import TOOLS

OHA = TOOLS["oha"]
CLOSED = LoadSpec(path="/hello", connections=8, duration_s=5.0, warmup_s=1.5)
COUNTED = LoadSpec(path="/hello", connections=8, requests=2_000, warmup_s=1.5)


def build_argv(spec):
    return OHA.invocations(spec, 2)[-1].argv


def value(argv, flag):
    return argv[argv.index(flag) + 1]


def test_a_closed_load_is_one_start_with_its_warm_up_in_it():
    (only,) = OHA.invocations(CLOSED, 2)
    assert only.kind == "measure"
    assert only.warmup_s == 1.5
    assert only.argv == (
        "{tool}", "--no-tui", "--no-color", "--output-format", "json", "-o", "{out}",
        "--db-url", "{rows}", "--worker-threads", "2", "-t", "10000ms",
        "--connect-timeout", "5000ms", "-c", "8", "-z", "6500ms", "-w", "-m", "GET",
        "-H", "accept-encoding: identity", "http://{address}:{port}/hello",
    )  # fmt: skip


def test_a_count_of_requests_warms_up_in_a_separate_start():
    warmup, measure = OHA.invocations(COUNTED, 2)
    assert (warmup.kind, measure.kind) == ("warmup", "measure")
    assert value(warmup.argv, "-z") == "1500ms"
    assert not {"{out}", "{rows}", "-n"} & set(warmup.argv)
    assert value(measure.argv, "-n") == "2000"
    assert "-z" not in measure.argv
    assert measure.warmup_s == 0


def test_a_count_without_warm_up_is_one_start():
    assert len(OHA.invocations(replace(COUNTED, warmup_s=0), 2)) == 1


def test_an_open_load_corrects_latency_for_its_schedule():
    argv = build_argv(replace(CLOSED, model="open", rate=12.5))
    assert value(argv, "-q") == "12.5"
    assert "--latency-correction" in argv
    assert "-q" not in build_argv(CLOSED)


def test_a_large_rate_is_written_in_digits():
    assert value(build_argv(replace(CLOSED, model="open", rate=1e6)), "-q") == "1000000"


def test_accepted_encodings_are_always_sent():
    def accepted(spec):
        argv = build_argv(spec)
        return [word for word in argv if word.lower().startswith("accept-encoding")]

    assert accepted(CLOSED) == ["accept-encoding: identity"]
    assert accepted(replace(CLOSED, compression=("zstd", "gzip"))) == [
        "accept-encoding: zstd, gzip"
    ]
    own = replace(CLOSED, headers=(("Accept-Encoding", "br"),))
    assert accepted(own) == ["Accept-Encoding: br"]


def test_method_headers_body_and_connections_are_passed():
    argv = build_argv(
        replace(
            CLOSED,
            method="POST",
            headers=(("content-type", "text/plain"), ("x", "a: b")),
            body="-x {a}",
            keepalive=False,
            path="/a{b}?q={}",
        )
    )
    assert value(argv, "-m") == "POST"
    assert "-d=-x {a}" in argv
    assert "x: a: b" in argv
    assert "--disable-keepalive" in argv
    assert argv[-1] == "http://{address}:{port}/a{b}?q={}"


@pytest.mark.parametrize(
    ("spec", "at_least", "at_most"),
    [
        (CLOSED, 6.5 + 15 + 10, 40),
        (replace(COUNTED, expected_rate=1_000.0), 6 + 15 + 10, 40),
        (COUNTED, 600, 660),
        (replace(COUNTED, requests=20, connections=8), 25, 60),
        (replace(COUNTED, requests=3_000_000), 3_000, 3_100),
    ],
)
def test_the_time_limit_allows_slow_responses(spec, at_least, at_most):
    assert at_least <= OHA.invocations(spec, 1)[-1].wall_limit_s <= at_most


def test_a_valid_load_has_no_problems():
    for spec in (CLOSED, COUNTED, replace(CLOSED, model="open", rate=500.0)):
        assert OHA.problems(spec) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"requests": 100}, "requests"),
        ({"duration_s": None}, "duration_s"),
        ({"duration_s": -1.0, "warmup_s": 0.0}, "duration_s"),
        ({"duration_s": None, "requests": 0}, "requests"),
        ({"duration_s": None, "requests": 5_000_001}, "requests"),
        ({"duration_s": 600.0}, "duration_s"),
        ({"duration_s": 600.0, "model": "open", "rate": 10_000.0}, "duration_s"),
        ({"connections": 0}, "connections"),
        ({"duration_s": None, "requests": 7}, "connections"),
        ({"model": "open"}, "rate"),
        ({"rate": 5.0}, "rate"),
        ({"model": "open", "rate": 0.0}, "rate"),
        ({"model": "open", "rate": float("nan")}, "rate"),
        ({"model": "half"}, "model"),
        ({"expected_rate": 0.0}, "expected_rate"),
        ({"warmup_s": 5.5}, "warmup_s"),
        ({"warmup_s": -0.1}, "warmup_s"),
        ({"request_timeout_s": 0.0}, "request_timeout_s"),
        ({"connect_timeout_s": float("inf")}, "connect_timeout_s"),
        ({"path": "hello"}, "path"),
        ({"path": "/a b"}, "path"),
        ({"path": "/a#b"}, "path"),
        ({"path": "/{port}"}, "path"),
        ({"body": "{out}"}, "body"),
        ({"body": "{address}"}, "body"),
        ({"body": "\x00"}, "body"),
        ({"method": "get"}, "method"),
        ({"headers": (("a", "b"), ("a b", "c"))}, "headers[1]"),
        ({"headers": (("-a", "b"),)}, "headers[0]"),
        ({"headers": (("a", "b\nc"),)}, "headers[0]"),
        ({"headers": (("a", "{tree}"),)}, "headers[0]"),
        ({"compression": ("gzip, br",)}, "compression[0]"),
        ({"compression": ("br",), "headers": (("accept-encoding", "br"),)}, "compression"),
        ({"streams": 2}, "streams"),
        ({"protocol": "h2", "streams": 0}, "streams"),
        ({"random_path": "hello"}, "random_path"),
        ({"random_path": "/("}, "random_path"),
        ({"random_path": "/{probe_rate}"}, "random_path"),
        ({"protocol": "h2", "keepalive": False}, "keepalive"),
    ],
)
def test_an_impossible_load_is_refused_with_the_field(changes, field):
    assert [name for name, _ in OHA.problems(replace(CLOSED, **changes))] == [field]


def test_http3_without_tls_is_refused():
    assert {field for field, _ in OHA.problems(replace(CLOSED, protocol="h3"))} == {"tls"}


def test_grpc_is_refused_with_the_supported_protocols():
    call = GrpcCall(method="hello.Greeter/SayHello")
    ((field, problem),) = OHA.problems(replace(CLOSED, protocol="grpc", grpc=call))
    assert field == "protocol"
    assert "HTTP/1.1, HTTP/1.1 over TLS, h2c" in problem


@pytest.mark.parametrize(
    ("changes", "flags", "url"),
    [
        ({"tls": True}, ["--cacert", "{ca}"], "https://{address}:{port}/hello"),
        ({"protocol": "h2"}, ["--http2"], "http://{address}:{port}/hello"),
        (
            {"protocol": "h2", "tls": True, "streams": 4},
            ["-p", "4", "--http2", "--cacert", "{ca}"],
            "https://{address}:{port}/hello",
        ),
        (
            {"protocol": "h3", "tls": True},
            ["--http-version", "3", "--cacert", "{ca}"],
            "https://{address}:{port}/hello",
        ),
        (
            {"random_path": r"/item\?id=[1-9]{1,4}"},
            ["--rand-regex-url"],
            r"http://{address}:{port}/item\?id=[1-9]{1,4}",
        ),
    ],
)
def test_the_requested_protocol_is_used(changes, flags, url):
    spec = replace(CLOSED, **changes)
    assert OHA.problems(spec) == []
    argv = build_argv(spec)
    assert [word for word in argv if word in flags] == flags
    assert argv[-1] == url


def test_the_rate_of_a_search_is_a_placeholder_of_the_agent():
    spec = replace(CLOSED, model="open", rate=1e5, searching=True)
    assert value(build_argv(spec), "-q") == "{probe_rate}"


def test_only_http3_is_checked_by_oha():
    assert OHA.probe(CLOSED) is None
    argv = OHA.probe(replace(CLOSED, protocol="h3", tls=True))
    assert value(argv, "-n") == value(argv, "-c") == "1"
    # Without a rate it would wait for the connection to idle out, with the correction without end.
    assert "-q" in argv
    assert "--latency-correction" not in argv


def test_loads_that_oha_never_ends_over_http3_are_refused():
    counted = replace(COUNTED, protocol="h3", tls=True)
    assert OHA.problems(counted) == []
    ((field, problem),) = OHA.problems(replace(counted, model="open", rate=100.0))
    assert field == "requests"
    assert "duration_s" in problem


def test_a_primer_has_a_low_rate_and_writes_no_file():
    primer, measure = OHA.invocations(replace(CLOSED, primer_s=5.0), 2)
    assert (primer.kind, measure.kind) == ("primer", "measure")
    assert value(primer.argv, "-q") == "10"
    assert not {"{out}", "{rows}"} & set(primer.argv)


def test_a_slow_server_may_be_loaded_for_long():
    assert OHA.problems(replace(CLOSED, duration_s=600.0, expected_rate=100.0)) == []


def test_a_long_body_is_read_from_a_file():
    spec = replace(CLOSED, method="PUT", body="x" * 501)
    assert value(build_argv(spec), "-D") == "{trial_dir}/body.bin"
    assert OHA.files(spec) == {"body.bin": "x" * 501}
    short = replace(spec, body="x" * 500)
    assert f"-d={short.body}" in build_argv(short)
    assert OHA.files(short) == {}


def test_a_warm_up_over_http3_may_wait_until_its_connections_are_idle():
    spec = replace(COUNTED, protocol="h3", tls=True)
    warmup = OHA.invocations(spec, 2)[0]
    assert warmup.wall_limit_s > spec.warmup_s + 30
    sooner = OHA.invocations(replace(spec, quic_idle_timeout_s=2.0), 2)[0]
    assert warmup.wall_limit_s - sooner.wall_limit_s == 28
