import json
from dataclasses import replace

import pytest

from agents.hostagent.sandbox.placeholders import fill_placeholders
from orchestrator.loadtools.model import GrpcCall, LoadSpec
from orchestrator.loadtools.registry import TOOLS

SCRIPT = TOOLS["script"]
LOAD = LoadSpec(
    path="/hello",
    connections=8,
    duration_s=5.0,
    warmup_s=1.5,
    command=("{python}", "{tree}/client.py", "-v"),
)
WORDS = {"port": "4711", "address": "[::1]", "ca": "/job/ca.pem", "probe_rate": "123.5"}


def parse_argument(spec):
    argv = SCRIPT.invocations(spec, 2)[-1].argv
    return json.loads(fill_placeholders(argv, WORDS)[-1])


def test_the_command_gets_one_more_argument():
    (only,) = SCRIPT.invocations(LOAD, 2)
    assert only.argv[:-1] == LOAD.command
    assert (only.kind, only.warmup_s) == ("measure", 1.5)
    assert only.wall_limit_s > 6.5


def test_the_script_receives_the_whole_load():
    assert parse_argument(LOAD) == {
        "schema": 1, "url": "http://[::1]:4711/hello", "address": "[::1]", "port": 4711,
        "tls": False, "ca": None, "protocol": "h1", "model": "closed", "rate": None,
        "connections": 8, "streams": 1, "duration_s": 5.0, "requests": None, "warmup_s": 1.5,
        "method": "GET", "path": "/hello", "random_path": None, "headers": [], "body": None,
        "compression": None, "keepalive": True, "grpc": None, "request_timeout_s": 10.0,
        "connect_timeout_s": 5.0, "parameters": {},
    }  # fmt: skip


def test_placeholders_are_filled_in_on_the_host():
    load = parse_argument(
        replace(LOAD, tls=True, protocol="h2", model="open", rate=9e9, searching=True)
    )
    assert load["ca"] == "/job/ca.pem"
    assert load["url"].startswith("https://")
    assert load["rate"] == 123.5


def test_a_grpc_call_is_passed_as_in_the_definition():
    call = GrpcCall(method="a.B/C", proto="a.proto", data={"name": "x"})
    load = parse_argument(replace(LOAD, protocol="grpc", grpc=call))
    assert load["grpc"] == {
        "call": "a.B/C", "proto": "a.proto", "import_paths": [], "data": {"name": "x"}
    }  # fmt: skip


def test_a_primer_has_a_low_rate():
    primer, measure = SCRIPT.invocations(replace(LOAD, primer_s=3.0), 2)
    load = json.loads(fill_placeholders(primer.argv, WORDS)[-1])
    assert (primer.kind, measure.kind) == ("primer", "measure")
    assert (load["rate"], load["connections"], load["duration_s"], load["warmup_s"]) == (
        10, 1, 3.0, 0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"command": ()}, "command"),
        ({"command": ("{python}", "client.py")}, "command[1]"),
        ({"command": ("./load/run.sh",)}, "command[0]"),
        ({"protocol": "h3"}, "tls"),
        ({"parameters": {"size": "{port}"}}, "parameters.size"),
        ({"body": "ü" * 65_000}, "body"),
        ({"connections": 0}, "connections"),
    ],
)
def test_an_impossible_command_is_refused(changes, field):
    assert SCRIPT.problems(LOAD) == []
    assert [name for name, _ in SCRIPT.problems(replace(LOAD, **changes))] == [field]


@pytest.mark.parametrize(
    "command",
    [("{tree}/run.sh",), ("/usr/bin/my.py",), ("node", "{tree}/a.js"), ("npx", "--yes", "x")],
)
def test_programs_are_found_by_path_or_tree(command):
    assert SCRIPT.problems(replace(LOAD, command=command)) == []


def test_http3_is_checked_by_the_script():
    assert SCRIPT.probe(LOAD) is None
    spec = replace(LOAD, protocol="h3", tls=True, model="open", rate=9.0, primer_s=1.0)
    argv = SCRIPT.probe(spec)
    load = json.loads(fill_placeholders(argv, WORDS)[-1])
    assert argv[:-1] == LOAD.command
    assert (load["protocol"], load["tls"], load["ca"]) == ("h3", True, "/job/ca.pem")
    assert (load["requests"], load["duration_s"], load["warmup_s"]) == (1, None, 0.0)
    assert (load["model"], load["rate"], load["connections"]) == ("closed", None, 1)


@pytest.mark.parametrize(("at_once", "least_s"), [(1, 600.0), (10, 60.0), (100, 30.0)])
def test_a_count_of_slow_requests_has_time_to_end(at_once, least_s):
    spec = replace(LOAD, duration_s=None, requests=1000, connections=at_once, warmup_s=0.0)
    (only,) = SCRIPT.invocations(spec, 1)
    assert least_s < only.wall_limit_s < least_s + 60
