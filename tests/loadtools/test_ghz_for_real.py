"""ghz itself against a server of its own, for about a second each."""

from dataclasses import replace

import pytest

from orchestrator.loadtools.model import GrpcCall, LoadSpec

from .ran import ran, with_tls
from .running import serious, serving

CALL = GrpcCall(
    method="helloworld.Greeter/SayHello", proto="helloworld.proto", data={"name": "Bob"}
)
LOAD = LoadSpec(
    path="/",
    connections=2,
    streams=2,
    duration_s=0.5,
    warmup_s=0.2,
    protocol="grpc",
    grpc=CALL,
    good_statuses=(0,),
)


def test_a_closed_load_is_measured_and_read(tmp_path):
    with serving("target.py") as port:
        reading, rows, _ = ran("ghz", LOAD, port, tmp_path)
    assert serious(reading) == set()
    assert reading.by_status == {0: rows["all"]["n"]}
    assert rows["warmup"]["n"] > 0
    # Each stream may begin one more call when the time is over, which is not counted.
    after = rows["all"]["n"] - rows["warmup"]["n"] - reading.ok.n
    assert 0 <= after <= LOAD.connections * LOAD.streams
    assert reading.readings["requests.rate"] == pytest.approx(reading.ok.n / 0.5)
    assert reading.readings["success.ratio"] == 1.0


@pytest.mark.quiet
def test_an_open_load_starts_due_calls(tmp_path):
    with serving("target.py") as port:
        reading, rows, _ = ran(
            "ghz", replace(LOAD, streams=1, model="open", rate=100.0), port, tmp_path
        )
    assert rows["corrected"] is True
    assert reading.planned == 50
    assert reading.ok.n == pytest.approx(50, abs=1)
    assert serious(reading) == set()


@pytest.mark.parametrize("call", ["SayHelloCS", "SayHelloServer", "SayHelloBidi"])
def test_a_stream_is_one_request(call, tmp_path):
    names = [{"name": "a"}, {"name": "b"}]
    grpc = replace(CALL, method=f"helloworld.Greeter/{call}", data=names)
    spec = replace(LOAD, duration_s=None, requests=40, grpc=grpc)
    with serving("target.py") as port:
        reading, rows, _ = ran("ghz", spec, port, tmp_path)
    assert serious(reading) == set()
    assert (reading.ok.n, rows["warmup"]["n"]) == (40, 0)


def test_tls_is_used_and_metadata_sent(tmp_path):
    spec = replace(LOAD, tls=True, headers=(("x", "1"),), duration_s=None, requests=20)
    with serving("target.py", *with_tls(tmp_path)) as port:
        reading, _, _ = ran("ghz", spec, port, tmp_path)
    assert serious(reading) == set()
    assert reading.ok.n == 20


def test_other_statuses_are_not_good_responses(tmp_path):
    spec = replace(LOAD, grpc=replace(CALL, data={"name": "code 5"}))
    with serving("target.py") as port:
        reading, _, _ = ran("ghz", spec, port, tmp_path)
    assert serious(reading) == {"http_errors"}
    assert set(reading.by_status) == {5}
    assert reading.readings["success.ratio"] == 0.0
