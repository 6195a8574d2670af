"""wrk itself against servers of this machine, for a second each."""

import json

import pytest

from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.registry import TOOLS

from .running import build_result, measure, read_rows, run, serious, serving, tls_files

LOAD = LoadSpec(path="/hello", connections=4, duration_s=1.0)


def changed(**fields):
    known = {name: getattr(LOAD, name) for name in ("path", "connections", "duration_s")}
    return LoadSpec(**{**known, **fields})


def test_a_load_is_measured_and_read(tmp_path):
    with serving("target.py") as port:
        reading = measure("wrk", changed(warmup_s=1.0, primer_s=1.0), port, tmp_path)
    assert serious(reading) == set()
    assert reading.ok.n > 0
    assert reading.readings["requests.ok"] == reading.ok.n
    assert reading.readings["requests.rate"] == pytest.approx(reading.ok.n / reading.window_end_s)
    assert reading.readings["success.ratio"] == 1.0
    assert reading.errors == {}
    assert reading.by_status is None
    assert reading.slices == ()


def test_the_defined_request_is_sent(tmp_path):
    body = 'a "quoted" line\r\n\\ {x} [[lua]] ünï 1'
    spec = changed(
        path='/a%20b?c="d\'e\\f"&g={h}',
        method="PATCH",
        headers=(("x", "1"), ("X", '"2"\\'), ("user-agent", "pitwall")),
        body=body,
        keepalive=False,
        compression=("gzip", "br"),
    )
    with serving("cycling.py", "echo") as port:
        left = run("wrk", spec, port, tmp_path)
    report = json.loads(left.out.read_bytes())
    request = (
        f"{spec.method} {spec.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nx: 1\r\n"
        'X: "2"\\\r\nuser-agent: pitwall\r\naccept-encoding: gzip, br\r\n'
        f"content-length: {len(body.encode())}\r\nconnection: close\r\n\r\n{body}"
    ).encode()
    answer = b"HTTP/1.1 200 Said\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(request)
    # What came back is as long as what was asked, for each request.
    assert report["requests"] > 0
    assert report["bytes"] == report["requests"] * (len(answer) + len(request))
    assert report["errors"]["read"] == 0


def test_tls_is_used(tmp_path):
    _, cert, key = tls_files(tmp_path)
    with serving("target.py", "--tls", cert, key) as port:
        reading = measure("wrk", changed(tls=True), port, tmp_path)
        untold = measure("wrk", LOAD, port, tmp_path)
    assert serious(reading) == set()
    assert reading.ok.n > 0
    assert set(untold.errors) == {"broken"}


def test_the_correction_of_wrk_for_a_freezing_server_is_removed(tmp_path):
    with serving("target.py", "--freeze", "0.3", "0.7") as port:
        left = run("wrk", changed(duration_s=2.0), port, tmp_path)
    report = json.loads(left.out.read_bytes())
    rows = read_rows("wrk", left)
    assert sum(report["count"]) > report["requests"] == rows["all"]["n"]
    slow = sum(
        count
        for us, count in zip(rows["ok"]["value_us"], rows["ok"]["count"], strict=True)
        if us > 200_000
    )
    # Each freeze stops one request on each connection, and no other.
    assert 0 < slow <= 4 * 4
    reading = TOOLS["wrk"].parse(
        changed(duration_s=2.0), left.out.read_bytes(), rows, build_result(left)
    )
    assert serious(reading) == set()


@pytest.mark.parametrize(
    ("answers", "codes", "errors", "known"),
    [
        (("200", "200", "503"), {"http_errors"}, set(), True),
        (("503",), {"http_errors"}, set(), True),
        (("200", "200", "drop"), {"transport_errors"}, {"broken"}, True),
        (("never",), {"no_answers"}, set(), False),
    ],
)
def test_errors_are_reported(answers, codes, errors, known, tmp_path):
    with serving("cycling.py", *answers) as port:
        reading = measure("wrk", LOAD, port, tmp_path)
    assert serious(reading) == codes
    assert set(reading.errors) == errors
    assert ("requests.rate" in reading.readings) is (known and "200" in answers)
    assert reading.validity.level == "invalid"


def test_late_answers_are_timeouts(tmp_path):
    spec = changed(duration_s=3.0, request_timeout_s=1.0)
    with serving("cycling.py", "late") as port:
        reading = measure("wrk", spec, port, tmp_path)
    assert serious(reading) == {"target_unreachable"}
    assert set(reading.errors) == {"timeout"}


def test_a_missing_server_is_a_failure_of_the_tool(tmp_path):
    with serving("target.py") as port:
        pass
    left = run("wrk", LOAD, port, tmp_path)
    assert left.rc == 1
    assert "Connection refused" in left.stderr
    assert not left.out.exists()
