import json
from dataclasses import replace

import pytest

from orchestrator.loadtools.ghz import MAX_CALLS, Ghz
from orchestrator.loadtools.model import GrpcCall, LoadSpec

GHZ = Ghz()
CALL = GrpcCall(
    method="helloworld.Greeter/SayHello", proto="protos/hello.proto", data={"name": "Bob"}
)
CLOSED = LoadSpec(
    path="/", connections=4, streams=2, duration_s=5.0, warmup_s=1.5, protocol="grpc", grpc=CALL
)
COUNTED = replace(CLOSED, duration_s=None, requests=2_000)
OPEN = replace(CLOSED, streams=1, model="open", rate=100.0)


def build_argv(spec):
    return GHZ.invocations(spec, 2)[-1].argv


def value(argv, flag):
    return argv[argv.index(flag) + 1]


def test_a_closed_load_is_one_start_with_its_warm_up_in_it():
    (only,) = GHZ.invocations(CLOSED, 2)
    assert (only.kind, only.warmup_s) == ("measure", 1.5)
    assert only.argv == (
        "{tool}", "-O", "json", "-o", "{rows}", "--cpus", "2", "-t", "10000ms",
        "--connect-timeout", "5000ms", "--connections", "4", "-c", "8",
        "-z", "6500ms", "--duration-stop", "wait", "--insecure",
        "--proto", "protos/hello.proto", "-i", "{tree}",
        "--call", "helloworld.Greeter/SayHello", "-D", "{trial_dir}/grpc-data.json",
        "{address}:{port}",
    )  # fmt: skip


def test_a_count_of_calls_warms_up_in_a_separate_start():
    warmup, measure = GHZ.invocations(COUNTED, 2)
    assert (warmup.kind, measure.kind) == ("warmup", "measure")
    assert value(warmup.argv, "-z") == "1500ms"
    assert "{rows}" not in warmup.argv
    assert value(measure.argv, "-n") == "2000"
    assert "-z" not in measure.argv
    assert measure.warmup_s == 0
    assert len(GHZ.invocations(replace(COUNTED, warmup_s=0), 2)) == 1


def test_an_open_load_does_not_wait_for_responses():
    argv = build_argv(OPEN)
    assert value(argv, "-r") == "100"
    assert "--async" in argv
    assert value(argv, "-c") == value(argv, "--connections") == "4"
    # Half an interval more: the last of 650 calls is due at 6500 ms.
    assert value(argv, "-z") == "6505ms"
    assert not {"-r", "--async"} & set(build_argv(CLOSED))


def test_a_search_leaves_the_rate_to_the_agent():
    assert value(build_argv(replace(OPEN, searching=True)), "-r") == "{probe_rate}"


def test_a_primer_has_a_low_rate():
    primer, _ = GHZ.invocations(replace(CLOSED, primer_s=2.0), 2)
    assert primer.kind == "primer"
    assert value(primer.argv, "-r") == "10"
    assert value(primer.argv, "--connections") == "1"
    assert "{rows}" not in primer.argv


def test_tls_trusts_the_authority_of_the_job_only():
    argv = build_argv(replace(CLOSED, tls=True))
    assert value(argv, "--cacert") == "{ca}"
    assert "--insecure" not in argv
    assert "--skipTLS" not in argv


def test_without_a_proto_file_reflection_is_used():
    argv = build_argv(replace(CLOSED, grpc=replace(CALL, proto=None)))
    assert not {"--proto", "-i"} & set(argv)


def test_proto_files_are_searched_for_in_the_tree():
    argv = build_argv(replace(CLOSED, grpc=replace(CALL, import_paths=("a", "b/c"))))
    assert value(argv, "-i") == "{tree},{tree}/a,{tree}/b/c"


def test_messages_are_passed_in_files():
    spec = replace(
        CLOSED, headers=(("x-key", 'a"b'),), grpc=replace(CALL, data=[{"name": "{out}"}])
    )
    files = GHZ.files(spec)
    assert json.loads(files["grpc-data.json"]) == [{"name": "{out}"}]
    assert json.loads(files["grpc-metadata.json"]) == {"x-key": 'a"b'}
    assert value(build_argv(spec), "-M") == "{trial_dir}/grpc-metadata.json"


def test_no_proxy_is_used():
    assert all(each.env["NO_PROXY"] == "*" for each in GHZ.invocations(COUNTED, 1))


@pytest.mark.parametrize(
    ("spec", "at_least", "at_most"),
    [
        (CLOSED, 6.5 + 15 + 10, 40),
        (replace(COUNTED, expected_rate=1_000.0), 6 + 15 + 10, 40),
        (COUNTED, 600, 660),
        (replace(COUNTED, requests=1_000_000), 1_000, 1_100),
    ],
)
def test_the_time_limit_allows_slow_responses(spec, at_least, at_most):
    assert at_least <= GHZ.invocations(spec, 1)[-1].wall_limit_s <= at_most


@pytest.mark.parametrize(
    "spec",
    [
        CLOSED,
        COUNTED,
        OPEN,
        replace(CLOSED, tls=True),
        replace(COUNTED, requests=MAX_CALLS),
        replace(CLOSED, duration_s=600.0, expected_rate=1_000.0),
        replace(CLOSED, grpc=replace(CALL, proto=None, data=[{}, {}])),
    ],
)
def test_a_valid_load_has_no_problems(spec):
    assert GHZ.problems(spec) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"protocol": "h2", "grpc": None, "streams": 1}, "protocol"),
        ({"grpc": None}, "grpc"),
        ({"method": "POST"}, "method"),
        ({"body": "x"}, "body"),
        ({"compression": ("gzip",)}, "compression"),
        ({"random_path": "/[a-z]"}, "random_path"),
        ({"streams": 1, "model": "open", "rate": 10.5}, "rate"),
        ({"model": "open", "rate": 10.0}, "streams"),
        ({"duration_s": None, "requests": MAX_CALLS + 1}, "requests"),
        ({"duration_s": 120.0}, "duration_s"),
        ({"streams": 1, "model": "open", "rate": 10_000.0, "duration_s": 100.0}, "duration_s"),
        ({"headers": (("a", "b"), ("A", "c"))}, "headers[0]"),
        ({"headers": (("a", "{{uuid}}"),)}, "headers[0]"),
        ({"grpc": replace(CALL, proto="hello.txt")}, "grpc.proto"),
        ({"grpc": replace(CALL, import_paths=("a,b",))}, "grpc.import_paths[0]"),
        ({"grpc": replace(CALL, data=[])}, "grpc.data"),
        ({"grpc": replace(CALL, data={"name": "{{.RequestNumber}}"})}, "grpc.data"),
    ],
)
def test_an_impossible_load_is_refused_with_the_field(changes, field):
    assert field in [name for name, _ in GHZ.problems(replace(CLOSED, **changes))]
