"""h2load itself against servers of this machine, for a second each."""

from dataclasses import replace

import pytest

from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.registry import TOOLS

from .running import build_result, measure, read_rows, run, serious, serving, tls_files

COUNTED = LoadSpec(path="/hello", connections=4, requests=400)
TIMED = LoadSpec(path="/hello", connections=4, duration_s=1.0, warmup_s=0.3, primer_s=0.2)
H2 = {"protocol": "h2", "streams": 3}


@pytest.mark.parametrize("spec", [COUNTED, replace(COUNTED, **H2)])
def test_a_count_of_requests_is_measured_and_read(spec, tmp_path):
    with serving("target.py") as port:
        reading = measure("h2load", spec, port, tmp_path)
    assert serious(reading) == set()
    assert reading.protocol == spec.protocol
    assert reading.by_status == {200: 400}
    assert reading.ok.n == 400
    assert reading.window_end_s == pytest.approx(400 / reading.readings["requests.rate"])
    assert reading.readings["body.bytes_per_1k"] == 13_000
    assert reading.readings["connect.mean"] > 0


@pytest.mark.parametrize("spec", [TIMED, replace(TIMED, **H2)])
def test_a_duration_is_measured_and_read(spec, tmp_path):
    with serving("target.py") as port:
        reading = measure("h2load", spec, port, tmp_path)
    assert serious(reading) == set()
    assert reading.ok.n > 0
    assert reading.readings["requests.rate"] == reading.ok.n
    assert reading.truncated <= spec.at_once
    assert reading.slices


@pytest.mark.parametrize("changes", [{}, H2])
def test_tls_is_used(changes, tmp_path):
    _, cert, key = tls_files(tmp_path)
    spec = replace(COUNTED, tls=True, **changes)
    with serving("target.py", "--tls", cert, key) as port:
        reading = measure("h2load", spec, port, tmp_path)
        untold = measure("h2load", replace(spec, tls=False, requests=8), port, tmp_path / "..")
    assert serious(reading) == set()
    assert reading.protocol == spec.protocol
    assert untold.validity.level == "invalid"


def test_the_defined_request_is_sent(tmp_path):
    body = 'a "quoted" line\r\n\\ {x} ünï 1'
    spec = replace(
        COUNTED,
        path="/a%20b?c=d'e&g={h}",
        requests=8,
        method="PATCH",
        headers=(("x", "1"), ("Host", "me"), ("user-agent", "pitwall")),
        body=body,
        keepalive=False,
        compression=("gzip", "br"),
    )
    with serving("cycling.py", "echo") as port:
        reading = measure("h2load", spec, port, tmp_path)
    size = len(body.encode())
    request = (
        f"PATCH {spec.path} HTTP/1.1\r\nHost: me\r\nuser-agent: pitwall\r\nx: 1\r\n"
        f"accept-encoding: gzip, br\r\nconnection: close\r\nContent-Length: {size}\r\n\r\n{body}"
    )
    assert serious(reading) == set()
    # What came back is as long as what was asked.
    assert reading.readings["body.bytes_per_1k"] == 1000 * len(request.encode())


@pytest.mark.parametrize(
    ("answers", "codes", "errors"),
    [
        (("200", "200", "503"), {"http_errors"}, set()),
        (("200",) * 50 + ("drop",), {"transport_errors"}, {"broken", "unsent"}),
        (("never",), {"target_unreachable"}, {"timeout", "unsent"}),
    ],
)
def test_errors_are_reported(answers, codes, errors, tmp_path):
    # Only what never comes is waited for as long as this.
    spec = replace(COUNTED, request_timeout_s=0.5 if answers == ("never",) else 30.0)
    with serving("cycling.py", *answers) as port:
        reading = measure("h2load", spec, port, tmp_path)
    assert serious(reading) == codes
    assert set(reading.errors) == errors
    assert sum(reading.errors.values()) + reading.ok.n + reading.other.n == 400


@pytest.mark.parametrize("spec", [COUNTED, TIMED])
def test_a_missing_server_is_reported_as_unreached(spec, tmp_path):
    with serving("target.py") as port:
        pass
    reading = measure("h2load", spec, port, tmp_path)
    assert serious(reading) == {"target_unreachable"}
    assert set(reading.errors) == {"connect"}


def test_requests_that_wait_to_be_sent_are_not_visible(tmp_path):
    """Why its rate is refused: of a load on time, a freeze would delay all that was due in it."""
    spec = replace(TIMED, connections=1, warmup_s=0.0, primer_s=0.0, duration_s=2.0)
    with serving("target.py", "--freeze", "0.3", "0.9") as port:
        argv = TOOLS["h2load"].invocations(spec, 1)[-1].argv
        left = run("h2load", spec, port, tmp_path, extra=("--rps", "100"))
        rows = read_rows("h2load", left)
    assert "--rps" not in argv
    delayed = sum(
        n for us, n in zip(rows["ok"]["value_us"], rows["ok"]["count"], strict=True) if us > 20_000
    )
    assert 0 < delayed < 30, "of a load on time, 60 requests were due in the freeze"
    with pytest.raises(AssertionError, match="cannot send at a fixed rate"):
        run("h2load", replace(spec, model="open", rate=100.0), port, tmp_path)
    assert build_result(left)["rc"] == 0
