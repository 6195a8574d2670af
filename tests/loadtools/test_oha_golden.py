"""Real outputs of oha 1.16.0, recorded against real servers in every kind of trouble."""

import json

import pytest

from orchestrator.loadtools.metrics import find_metric
from orchestrator.loadtools.model import ToolOutputError
from orchestrator.loadtools.oha_errors import classify_error
from orchestrator.loadtools.registry import TOOLS

from .conftest import GOLDEN, build_load, recorded, result_for, rows_for

EMPTY = {"badurl", "dnsfail", "h3_unsupported"}
NAMES = sorted(path.stem.removeprefix("oha_") for path in GOLDEN.glob("oha_*.json"))
READABLE = [name for name in NAMES if name not in EMPTY]


def read(name, **changes):
    output = recorded(name)
    rows, result = rows_for(output), result_for(**changes)
    return TOOLS["oha"].parse(build_load(result, rows), output, rows, result)


def numbers(part, path=()):
    """Every number and null below `part`, histograms and counts aside."""
    if isinstance(part, dict):
        for key, value in part.items():
            if not key.endswith(("Histogram", "Successful", "Distribution")):
                yield from numbers(value, (*path, key))
    else:
        yield path, part


def test_recordings_exist():
    assert len(READABLE) > 60


@pytest.mark.parametrize("name", READABLE)
def test_every_value_is_read_and_none_added(name):
    readings = read(name).readings
    for path, value in numbers(json.loads(recorded(name))):
        key = ".".join(("oha", *path))
        if value is None:
            assert key not in readings
        else:
            scale = 1e-3 if "latency_ms" in path else 1
            assert readings[key] == pytest.approx(value * scale)


@pytest.mark.parametrize("name", READABLE)
def test_every_value_has_a_metric_and_is_finite(name):
    readings = read(name).readings
    assert all(map(find_metric, readings))
    assert all(isinstance(value, float) and value >= 0 for value in readings.values())


@pytest.mark.parametrize("name", READABLE)
def test_latency_and_rate_are_unknown_without_a_good_response(name):
    reading = read(name)
    measured = [
        key
        for key in reading.readings
        if key == "requests.rate" or (key.startswith("latency.") and "first_byte" not in key)
    ]
    if reading.ok.n:
        assert {"requests.rate", "latency.mean"} <= set(measured)
        assert reading.readings["latency.mean"] > 0
    else:
        assert measured == []
        assert reading.validity.level == "invalid"


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_missing_output_is_an_error(name):
    with pytest.raises(ToolOutputError, match="not JSON"):
        TOOLS["oha"].parse(build_load(result_for(), {}), recorded(name), {}, result_for(rc=1))


@pytest.mark.parametrize(
    ("name", "errors", "truncated", "codes"),
    [
        ("n200", {}, 0, set()),
        ("z2", {}, 10, set()),
        ("deadline", {}, 4, {"all_truncated"}),
        ("flaky", {"broken": 40}, 0, {"http_errors", "transport_errors"}),
        ("frozen_w_t", {"timeout": 12}, 0, {"transport_errors"}),
        ("h1_tls_untrusted", {"tls": 20}, 0, {"target_unreachable"}),
        ("h2_on_plain_tls11", {"tls": 10}, 0, {"target_unreachable"}),
        ("h2c_to_h1only", {"broken": 1, "h2_protocol": 9}, 0, {"no_answers"}),
        ("h3_untrusted", {"tls": 6}, 0, {"target_unreachable"}),
        ("killed_mid", {"refused": 8413, "broken": 11}, 0, {"transport_errors"}),
        ("killed_mid_h2", {"refused": 2808, "broken": 24}, 0, {"transport_errors"}),
        ("nofile", {"client_fd_limit": 155}, 0, {"transport_errors"}),
        ("refused_z", {"refused": 8093}, 5, {"target_unreachable"}),
        ("status404", {}, 0, {"http_errors"}),
        ("status500", {}, 0, {"http_errors"}),
        ("redirect_default", {}, 0, {"http_errors"}),
        ("timeout", {"timeout": 12}, 0, {"target_unreachable"}),
    ],
)
def test_kinds_of_failure_are_distinguished(name, errors, truncated, codes):
    reading = read(name)
    assert dict(reading.errors) == errors
    assert reading.truncated == truncated
    # The made-up rows have one latency only, so Little's law says nothing about them.
    assert {each.code for each in reading.validity.reasons} - {"littles_law"} == codes


def test_an_overloaded_server_is_detected_by_the_delivered_rate():
    reading = read("overload_q_lc", argv=("-z", "3s", "-q", "1000", "-c", "10"))
    assert reading.delivered == pytest.approx(545 / 3000)
    assert "underdelivered" in [each.code for each in reading.validity.reasons]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Connection reset by peer (os error 104)", "broken"),
        ("QUIC connection: timed out", "timeout"),
        ("QUIC connection: closed", "quic"),
        ("No record found for name", "dns"),
        ("DNS error: no records found", "dns"),
        ("something that nobody has seen", "other"),
    ],
)
def test_error_texts_without_a_recording_are_recognised(text, name):
    assert classify_error(text) == name
