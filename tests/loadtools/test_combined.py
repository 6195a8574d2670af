"""The readings of searches, and of loads at shares of a capacity, combined for a trial."""

from dataclasses import replace

import pytest

from orchestrator.loadtools.combined import combine_search, combine_shares
from orchestrator.loadtools.model import (
    Distribution,
    Level,
    LoadFacts,
    Reason,
    TrialReading,
    Validity,
)

LOAD = LoadFacts(
    model="open", connections=1, tool_cpus=1, rate=100.0, duration_s=1.0, requests=None, warmup_s=0
)
READING = TrialReading(
    tool="oha", tool_version=None, load=LOAD, window_start_s=0, window_end_s=1,
    readings={"latency.p50": 0.01, "latency.p10": 0.001, "requests.rate": 100.0},
    ok=Distribution(value_us=(10_000,), count=(100,)), other=Distribution(), by_status=None,
    errors=None, error_texts={}, truncated=0, planned=100.0, delivered=1.0, slices=(),
    validity=Validity(),
)  # fmt: skip
SLOW = Reason(code="underdelivered", level=Level.INVALID, message="only 80 %")
STEAL = Reason(code="steal", level=Level.SUSPECT, message="3 %")
PROBES = [{"loads": [0], "rate": 100.0, "passed": True, "reason": ""}] * 3


def combine(capacity, low, high, stopped):
    result = {"capacity": capacity, "low": low, "high": high, "stopped": stopped, "probes": PROBES}
    return combine_search([READING], result)


def test_a_converged_search_is_valid():
    reading = combine(1000.0, 990.0, 1010.0, "converged")
    assert reading.readings == {
        "capacity.rate": 1000, "capacity.low": 990, "capacity.high": 1010, "capacity.probes": 3,
    }  # fmt: skip
    assert reading.validity.level == "valid"


def test_a_search_that_its_budget_ended_counts_with_its_interval():
    reading = combine(1000.0, 900.0, 1100.0, "budget")
    assert reading.readings["capacity.rate"] == 1000
    (reason,) = reading.validity.reasons
    assert (reason.code, reason.level) == ("search_open", "suspect")
    assert "interval of the capacity is 22 % wide" in reason.message


@pytest.mark.parametrize(
    ("low", "high", "stopped", "advice"),
    [
        (800.0, None, "budget", "allow more max_probes"),
        (None, 50.0, "budget", "allow more max_probes"),
        (1000.0, None, "at the limit", "raise search.high"),
        (None, 6.0, "below the start", "lower search.low"),
    ],
)
def test_a_search_without_a_capacity_is_invalid(low, high, stopped, advice):
    reading = combine(None, low, high, stopped)
    assert "capacity.rate" not in reading.readings
    assert reading.validity.level == "invalid"
    assert advice in reading.validity.reasons[0].message


def test_each_share_has_its_own_metrics():
    loads = [replace(READING, readings={"latency.p50": at / 100}) for at in (1, 2, 3)]
    reading = combine_shares(loads)
    assert reading.readings == {
        "capacity.at_50.latency.p50": 0.01,
        "capacity.at_80.latency.p50": 0.02,
        "capacity.at_95.latency.p50": 0.03,
    }
    assert (reading.ok.n, reading.validity.level) == (0, "valid")


def test_metrics_without_a_meaning_at_a_share_are_left_out():
    assert set(combine_shares([READING] * 3).readings) == {
        f"capacity.at_{share}.latency.p50" for share in (50, 80, 95)
    }


def test_an_overload_at_a_share_excludes_the_trial():
    """In a stepped load, it would only leave out the step."""
    loads = [READING, READING, replace(READING, validity=Validity(reasons=(SLOW, STEAL)))]
    validity = combine_shares(loads).validity
    assert (validity.level, validity.codes) == ("invalid", ("underdelivered", "steal"))
    assert validity.reasons[0].message == "in 1 of 3 loads: only 80 %"


def test_each_share_needs_its_load():
    with pytest.raises(ValueError, match="zip"):
        combine_shares([READING, READING])
