from dataclasses import replace

import pytest

from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.registry import TOOLS

H2LOAD = TOOLS["h2load"]
TIMED = LoadSpec(path="/hello", connections=8, duration_s=5.0, warmup_s=1.5)
COUNTED = LoadSpec(path="/hello", connections=8, requests=2_000)


def build_argv(spec, cpus=1):
    return H2LOAD.invocations(spec, cpus)[-1].argv


def test_a_duration_has_a_warm_up_before():
    warmup, measure = H2LOAD.invocations(TIMED, 2)
    assert (warmup.kind, measure.kind) == ("warmup", "measure")
    assert measure.argv == (
        "{tool}", "-t", "2", "-c", "8", "--log-file={rows}", "-D", "5000ms", "-m", "1", "--h1",
        "-H", ":method: GET", "-H", "accept-encoding: identity", "http://{address}:{port}/hello",
    )  # fmt: skip
    assert "1500ms" in warmup.argv
    assert "--log-file={rows}" not in warmup.argv
    assert measure.warmup_s == 0


def test_only_a_count_of_requests_can_be_stopped_early():
    """With a duration h2load crashes at its time-out."""
    argv = build_argv(COUNTED)
    assert argv[argv.index("-n") + 1] == "2000"
    assert argv[argv.index("-N") + 1] == "10000ms"
    assert "-N" not in build_argv(TIMED)


def test_a_primer_has_a_low_rate():
    primer = H2LOAD.invocations(replace(TIMED, primer_s=3.0), 2)[0]
    assert primer.kind == "primer"
    assert primer.argv[1:9] == ("-t", "1", "-c", "1", "--rps", "10", "-D", "3000ms")


def test_threads_do_not_exceed_connections():
    assert build_argv(replace(COUNTED, connections=2), 4)[1:3] == ("-t", "2")


@pytest.mark.parametrize(
    ("changes", "flag", "url"),
    [
        ({}, "--h1", "http://{address}:{port}/hello"),
        ({"tls": True}, "--h1", "https://{address}:{port}/hello"),
        ({"protocol": "h2", "streams": 5}, "--no-tls-proto=h2c", "http://{address}:{port}/hello"),
        ({"protocol": "h2", "tls": True}, "--npn-list=h2", "https://{address}:{port}/hello"),
    ],
)
def test_only_the_requested_protocol_is_offered(changes, flag, url):
    spec = replace(COUNTED, **changes)
    assert H2LOAD.problems(spec) == []
    argv = build_argv(spec)
    assert flag in argv
    assert argv[argv.index("-m") + 1] == str(spec.streams)
    assert argv[-1] == url


def test_headers_that_h2load_sets_are_replaced():
    spec = replace(COUNTED, method="PUT", headers=(("Host", "me"),), body="x", keepalive=False)
    argv = build_argv(spec)
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "-H"] == [
        ":method: PUT", ":authority: me", "accept-encoding: identity", "connection: close",
    ]  # fmt: skip
    assert argv[argv.index("-d") + 1] == "{trial_dir}/body.bin"
    assert H2LOAD.files(spec) == {"body.bin": "x"}
    assert H2LOAD.files(COUNTED) == {}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"model": "open", "rate": 100.0}, "rate"),
        ({"protocol": "h3", "tls": True}, "protocol"),
        ({"random_path": "/[0-9]"}, "random_path"),
        ({"method": "HEAD"}, "method"),
        ({"headers": (("content-length", "5"),)}, "headers[0]"),
        ({"headers": (("x", ""),)}, "headers[0]"),
        ({"protocol": "h2", "keepalive": False}, "keepalive"),
    ],
)
def test_unsupported_loads_are_refused(changes, field):
    assert H2LOAD.problems(COUNTED) == []
    assert field in [name for name, _ in H2LOAD.problems(replace(COUNTED, **changes))]


def test_http2_supports_head_requests():
    assert H2LOAD.problems(replace(COUNTED, method="HEAD", protocol="h2")) == []
