import json
from dataclasses import replace

import pytest

from orchestrator.loadtools.k6 import K6, MAX_REQUESTS
from orchestrator.loadtools.model import GrpcCall, LoadSpec

TOOL = K6()
CLOSED = LoadSpec(path="/hello", connections=8, duration_s=5.0, warmup_s=1.5)
COUNTED = replace(CLOSED, duration_s=None, requests=2_000)
OPEN = replace(CLOSED, model="open", rate=100.0)
CALL = GrpcCall(method="helloworld.Greeter/SayHello", proto="a/hello.proto", data={"name": "{out}"})
GRPC = replace(CLOSED, protocol="grpc", grpc=CALL)


def measure(spec):
    return TOOL.invocations(spec, 2)[-1]


def parse_environment(invocation):
    """What the script gets as its environment."""
    argv = invocation.argv
    pairs = [argv[place + 1] for place, word in enumerate(argv) if word == "-e"]
    return dict(pair.split("=", 1) for pair in pairs)


def shape(spec):
    return json.loads(parse_environment(measure(spec))["SHAPE"])


def build_request(spec):
    return json.loads(TOOL.files(spec)["load.json"])


def test_a_closed_load_is_one_start_with_its_warm_up_in_it():
    (only,) = TOOL.invocations(CLOSED, 2)
    assert (only.kind, only.warmup_s) == ("measure", 1.5)
    assert only.argv == (
        "{tool}", "run", "--quiet", "--no-color", "--config", "{trial_dir}/k6.json",
        "--address=", "--include-system-env-vars=false", "--out", "csv",
        "-e", "TARGET=http://{address}:{port}", "-e", "OUT={out}",
        "-e", 'SHAPE={"executor": "constant-vus", "vus": 8, "duration": "6500ms", '
        '"gracefulStop": "15000ms"}',
        "-e", "RATE=", "{trial_dir}/load.js",
    )  # fmt: skip
    assert only.env["K6_CSV_FILENAME"] == "{rows}"
    assert only.env["K6_CSV_TIME_FORMAT"] == "unix_nano"
    assert only.env["GOMAXPROCS"] == "2"


def test_a_count_of_requests_warms_up_in_a_separate_start():
    warmup, counted = TOOL.invocations(COUNTED, 2)
    assert (warmup.kind, counted.kind) == ("warmup", "measure")
    assert json.loads(parse_environment(warmup)["SHAPE"])["duration"] == "1500ms"
    assert "--out" not in warmup.argv
    assert shape(COUNTED)["executor"] == "shared-iterations"
    assert (shape(COUNTED)["vus"], shape(COUNTED)["iterations"]) == (8, 2_000)
    assert counted.warmup_s == 0


def test_an_open_load_has_a_user_for_each_connection():
    scenario = shape(OPEN)
    assert scenario["executor"] == "constant-arrival-rate"
    assert scenario["preAllocatedVUs"] == scenario["maxVUs"] == 8
    assert scenario["duration"] == "6500ms"
    assert parse_environment(measure(OPEN))["RATE"] == "100"


def test_an_open_count_ends_before_one_more_is_due():
    assert shape(replace(OPEN, duration_s=None, requests=500))["duration"] == "4995ms"


def test_a_search_leaves_the_rate_to_the_agent():
    assert parse_environment(measure(replace(OPEN, searching=True)))["RATE"] == "{probe_rate}"


def test_a_primer_has_a_low_rate_and_the_minimum_duration_of_k6():
    primer, _ = TOOL.invocations(replace(CLOSED, primer_s=0.2), 2)
    scenario = json.loads(parse_environment(primer)["SHAPE"])
    assert primer.kind == "primer"
    assert parse_environment(primer)["RATE"] == "10"
    assert (scenario["maxVUs"], scenario["duration"]) == (1, "1000ms")
    assert "--out" not in primer.argv


def test_tls_trusts_the_authority_of_the_job():
    assert measure(replace(CLOSED, tls=True)).env["SSL_CERT_FILE"] == "{ca}"
    assert (
        parse_environment(measure(replace(CLOSED, tls=True)))["TARGET"]
        == "https://{address}:{port}"
    )
    assert "SSL_CERT_FILE" not in measure(CLOSED).env


def test_http1_is_not_upgraded_to_http2():
    assert measure(CLOSED).env["GODEBUG"] == "http2client=0"
    assert "GODEBUG" not in measure(replace(CLOSED, protocol="h2", tls=True)).env


def test_only_the_server_is_contacted():
    env = measure(CLOSED).env
    assert env["NO_PROXY"] == "*"
    assert env["K6_NO_USAGE_REPORT"] == "true"
    assert env["K6_AUTO_EXTENSION_RESOLUTION"] == "false"
    assert TOOL.files(CLOSED)["k6.json"] == "{}"


def test_the_request_is_data_and_the_script_always_the_same():
    spec = replace(
        CLOSED, method="POST", body="`${1}`\"'</script>", headers=(("x", 'a"\\'),),
        path="/a?b=${c}", keepalive=False, request_timeout_s=0.25,
    )  # fmt: skip
    assert build_request(spec) == {
        "method": "POST", "path": "/a?b=${c}", "body": "`${1}`\"'</script>", "keepalive": False,
        "headers": {"accept-encoding": "identity", "x": 'a"\\'}, "timeout_ms": 250,
        "connect_timeout_ms": 5000, "tls": False, "grpc": None,
    }  # fmt: skip
    assert TOOL.files(spec)["load.js"] == TOOL.files(CLOSED)["load.js"]
    assert measure(spec).argv == measure(CLOSED).argv[:-5] + measure(spec).argv[-5:]


def test_accepted_encodings_are_always_sent():
    assert build_request(CLOSED)["headers"] == {"accept-encoding": "identity"}
    request = build_request(replace(CLOSED, compression=("zstd", "gzip")))
    assert request["headers"] == {"accept-encoding": "zstd, gzip"}
    own = build_request(replace(CLOSED, headers=(("Accept-Encoding", "br"),)))
    assert own["headers"] == {"Accept-Encoding": "br"}


def test_a_call_finds_its_protos_in_the_tree():
    env = parse_environment(measure(GRPC))
    assert (env["TARGET"], env["TREE"]) == ("{address}:{port}", "{tree}")
    assert build_request(replace(GRPC, grpc=replace(CALL, import_paths=("b",))))["grpc"] == {
        "method": "helloworld.Greeter/SayHello", "proto": "a/hello.proto",
        "import_paths": ["b"], "data": {"name": "{out}"},
    }  # fmt: skip
    assert build_request(GRPC)["headers"] == {}


@pytest.mark.parametrize(
    ("spec", "at_least", "at_most"),
    [
        (CLOSED, 6.5 + 15 + 10, 40),
        (replace(CLOSED, connections=1_000), 6.5 + 15 + 10 + 15, 60),
        (replace(COUNTED, expected_rate=1_000.0), 6 + 15 + 10, 40),
        (COUNTED, 600, 660),
    ],
)
def test_the_time_limit_allows_slow_responses(spec, at_least, at_most):
    assert at_least <= measure(spec).wall_limit_s <= at_most


@pytest.mark.parametrize(
    "spec",
    [
        CLOSED,
        COUNTED,
        OPEN,
        GRPC,
        replace(OPEN, rate=0.5),
        replace(CLOSED, protocol="h2", tls=True),
        replace(CLOSED, tls=True, keepalive=False),
        replace(GRPC, tls=True, grpc=replace(CALL, proto=None)),
        replace(COUNTED, requests=MAX_REQUESTS),
        replace(OPEN, duration_s=None, requests=100),
    ],
)
def test_a_valid_load_has_no_problems(spec):
    assert TOOL.problems(spec) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"protocol": "h2"}, "tls"),
        ({"protocol": "h3", "tls": True}, "protocol"),
        ({"protocol": "h2", "tls": True, "streams": 2}, "streams"),
        ({"random_path": "/[a-z]"}, "random_path"),
        ({"headers": (("a", "b"), ("A", "c"))}, "headers[1]"),
        ({"duration_s": 0.5, "warmup_s": 0.2}, "duration_s"),
        ({"duration_s": None, "requests": 50, "model": "open", "rate": 100.0}, "requests"),
        ({"model": "open", "rate": 0.0001}, "rate"),
        ({"duration_s": None, "requests": MAX_REQUESTS + 1}, "requests"),
        ({"duration_s": 120.0}, "duration_s"),
        ({"duration_s": 60.0, "model": "open", "rate": 20_000.0}, "duration_s"),
        ({"duration_s": None, "requests": 500, "model": "open", "rate": 9.0, "searching": True},
         "requests"),
        ({"protocol": "grpc", "grpc": replace(CALL, data=[{}])}, "grpc.data"),
        ({"protocol": "grpc", "grpc": CALL, "compression": ("gzip",)}, "compression"),
        ({"protocol": "grpc", "grpc": CALL, "body": "x"}, "body"),
    ],
)  # fmt: skip
def test_an_impossible_load_is_refused_with_the_field(changes, field):
    assert field in [name for name, _ in TOOL.problems(replace(CLOSED, **changes))]
