"""k6 itself against a server of its own, for about a second each."""

import json
from dataclasses import replace

import pytest

from orchestrator.loadtools.model import GrpcCall, LoadSpec

from .ran import ran, with_tls
from .running import serious, serving

LOAD = LoadSpec(path="/hello", connections=2, duration_s=0.8, warmup_s=0.3)
CALL = GrpcCall(
    method="helloworld.Greeter/SayHello", proto="helloworld.proto", data={"name": "Bob"}
)


def test_a_closed_load_is_measured_and_read(tmp_path):
    with serving("target.py") as port:
        reading, rows, stderr = ran("k6", LOAD, port, tmp_path)
    assert serious(reading) == set()
    # Each connection may begin one more request when the time is over, which is not counted.
    after = rows["all"]["n"] - rows["warmup"]["n"] - reading.ok.n
    assert 0 <= after <= LOAD.connections
    assert rows["warmup"]["n"] > 0
    assert reading.readings["requests.rate"] == pytest.approx(reading.ok.n / 0.8)
    assert reading.readings["throughput.bytes_per_s"] == pytest.approx(reading.ok.n * 13 / 0.8)
    assert (reading.protocol, stderr) == ("h1", "")


@pytest.mark.quiet
def test_an_open_load_sends_due_requests(tmp_path):
    spec = replace(LOAD, connections=20, model="open", rate=62.5)
    with serving("target.py") as port:
        reading, rows, _ = ran("k6", spec, port, tmp_path)
    assert rows["corrected"] is True
    assert reading.planned == 50
    assert reading.ok.n == pytest.approx(50, abs=1)
    assert serious(reading) == set()


@pytest.mark.quiet
def test_the_rate_of_a_search_comes_from_the_agent(tmp_path):
    spec = replace(LOAD, connections=20, model="open", rate=1e5, searching=True, expected_rate=1.0)
    with serving("target.py") as port:
        _, rows, _ = ran("k6", replace(spec, duration_s=1.0, warmup_s=0.0), port, tmp_path)
    assert rows["all"]["n"] == pytest.approx(100, abs=1)


@pytest.mark.parametrize(("protocol", "keepalive"), [("h1", True), ("h1", False), ("h2", True)])
def test_the_requested_protocol_is_used_over_tls(protocol, keepalive, tmp_path):
    spec = replace(
        LOAD, tls=True, protocol=protocol, keepalive=keepalive, duration_s=None, requests=20,
        warmup_s=0.0,
    )  # fmt: skip
    with serving("target.py", *with_tls(tmp_path)) as port:
        reading, _, _ = ran("k6", spec, port, tmp_path)
    assert serious(reading) == set()
    assert (reading.protocol, reading.ok.n) == (protocol, 20)


def test_the_server_receives_the_defined_request(tmp_path):
    body = '`${1}` "quoted" </script> é {}'
    spec = replace(
        LOAD, path="/echo", method="POST", body=body, headers=(("x", '"a" \\ b'),),
        duration_s=None, requests=4, warmup_s=0.0,
    )  # fmt: skip
    with serving("target.py") as port:
        reading, rows, _ = ran("k6", spec, port, tmp_path)
    length = len(json.dumps(["POST", '"a" \\ b', body]))
    assert rows["length"] == {"min": length, "max": length}
    assert reading.ok.n == 4


def test_a_count_of_calls_over_tls_is_counted_without_its_warm_up(tmp_path):
    spec = replace(
        LOAD, protocol="grpc", grpc=CALL, tls=True, duration_s=None, requests=30,
        headers=(("x", "1"),), good_statuses=(0,),
    )  # fmt: skip
    with serving("target.py", *with_tls(tmp_path)) as port:
        reading, rows, _ = ran("k6", spec, port, tmp_path)
    assert serious(reading) == set()
    assert (reading.ok.n, rows["warmup"]["n"], reading.protocol) == (30, 0, "grpc")


def test_bad_responses_are_counted(tmp_path):
    with serving("target.py") as port:
        reading, _, _ = ran("k6", replace(LOAD, path="/status/500"), port, tmp_path)
    assert serious(reading) == {"http_errors"}
    assert reading.readings["success.ratio"] == 0.0
