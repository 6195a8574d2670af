"""The search for a capacity: the rates it tries, and how near it comes, with fixed seeds."""

import json
import math

import pytest

from agents.hostagent.trials.capacity import CONFIRMED_SHARE, CapacitySearch
from perf.detection.capacity import measure_capacity_errors

LOW, HIGH = 100.0, 100_000.0
AMPLE = 60


def search(answer, *, low=LOW, high=HIGH, max_probes=AMPLE, confirmations=5):
    """All probes, as (rate, passed), and the outcome; `answer(rate, n)` says whether it passed."""
    rates = CapacitySearch(low, high, max_probes, confirmations)
    probes = []
    while (rate := rates.next_rate()) is not None:
        passed = answer(rate, len(probes))
        probes.append((rate, passed))
        rates.add_probe(rate, passed)
    return probes, rates.outcome()


def exact(capacity, *, lies=()):
    """A server without noise, but for the probes (counted from 0) that say the opposite."""
    return lambda rate, n: (rate <= capacity) != (n in lies)


def list_rates(probes):
    return [rate for rate, _ in probes]


def test_search_starts_low_and_doubles_until_a_probe_fails():
    probes, _ = search(exact(1_500))
    assert list_rates(probes)[:5] == [100, 200, 400, 800, 1_600]
    assert 800 < list_rates(probes)[5] < 1_600


def test_search_reports_that_the_highest_rate_held():
    probes, outcome = search(exact(1e9), high=1_000)
    assert list_rates(probes) == [100, 200, 400, 800, 1_000]
    assert outcome == {"capacity": None, "low": 1_000, "high": None, "stopped": "at the limit"}


def test_search_goes_down_to_a_sixteenth_where_the_start_fails():
    probes, outcome = search(exact(1))
    assert list_rates(probes)[:5] == [100, 50, 25, 12.5, 6.25]
    assert set(list_rates(probes)[5:]) <= {6.25}
    assert outcome == {"capacity": None, "low": None, "high": 6.25, "stopped": "below the start"}


def test_search_finds_a_capacity_below_the_start():
    _, outcome = search(exact(30))
    assert outcome["stopped"] == "converged"
    assert outcome["capacity"] == pytest.approx(30, rel=0.04)


@pytest.mark.parametrize("high", [101.0, 150.0, 1e6])
@pytest.mark.parametrize("share", [0.07, 0.5, 0.99])
def test_search_stays_within_its_rates(high, share):
    probes, _ = search(exact(share * high), high=high)
    assert all(LOW / 16 <= rate <= high for rate in list_rates(probes))


def test_search_asks_for_whole_rates_from_a_hundred_on():
    probes, _ = search(exact(12_345.6))
    assert all(rate == int(rate) for rate in list_rates(probes))


def test_search_confirms_at_95_percent_of_its_result():
    probes, outcome = search(exact(7_000))
    confirmations = probes[-5:]
    (rate,) = {rate for rate, _ in confirmations}
    assert rate == pytest.approx(CONFIRMED_SHARE * outcome["capacity"], rel=0.02)
    assert all(passed for _, passed in confirmations)


def test_search_confirms_from_the_start_after_a_confirmation_has_failed():
    without, _ = search(exact(7_000))
    first = len(without) - 5
    probes, outcome = search(exact(7_000, lies={first + 3}))
    assert probes[first + 3][1] is False
    assert probes[first + 3][0] == probes[first][0]
    assert len(probes) >= first + 4 + 5
    (rate,) = {rate for rate, _ in probes[-5:]}
    assert rate == pytest.approx(CONFIRMED_SHARE * outcome["capacity"], rel=0.02)
    assert all(passed for _, passed in probes[-5:])


def test_a_failed_confirmation_lowers_the_estimate():
    """A server that holds 95 % of its capacity only for a while: found further down."""
    plain, before = search(exact(7_000))
    first = len(plain) - 5

    def tired(rate, n):
        return rate <= (7_000 if n < first else 6_000)

    _, after = search(tired)
    assert before["capacity"] == pytest.approx(7_000, rel=0.04)
    assert after["capacity"] < 0.95 * before["capacity"]
    assert after["low"] < 6_000


@pytest.mark.parametrize("lie", range(18))
def test_search_survives_one_wrong_probe(lie):
    _, outcome = search(exact(7_000, lies={lie}))
    assert outcome["stopped"] == "converged"
    assert outcome["capacity"] == pytest.approx(7_000, rel=0.05)


def test_search_recovers_from_a_wrong_probe_at_the_limit():
    _, outcome = search(exact(1e9, lies={3}), high=1_000)
    assert outcome["stopped"] == "at the limit"


@pytest.mark.parametrize("max_probes", [9, 12, 16])
def test_search_keeps_its_budget_and_reports_what_it_knows(max_probes):
    probes, outcome = search(exact(7_000), max_probes=max_probes)
    assert len(probes) == max_probes
    assert outcome["stopped"] == "budget"
    assert outcome["low"] < outcome["capacity"] < outcome["high"]
    assert outcome["low"] <= 7_000 <= outcome["high"]


def test_a_search_with_one_kind_of_result_reports_no_capacity():
    _, outcome = search(exact(7_000), max_probes=6)
    assert (outcome["stopped"], outcome["capacity"]) == ("budget", None)


def test_search_goes_no_lower_than_allowed():
    rates = CapacitySearch(LOW, HIGH, AMPLE, 5, lowest=40)
    probed = []
    while (rate := rates.next_rate()) is not None:
        probed.append(rate)
        rates.add_probe(rate, False)
    assert set(probed) == {100, 50, 40}
    assert rates.outcome() == {
        "capacity": None, "low": None, "high": 40, "stopped": "below the start",
    }  # fmt: skip


def test_an_interval_end_without_a_probe_is_unknown():
    _, outcome = search(exact(7_000), max_probes=3)
    assert (outcome["low"], outcome["high"]) == (400, None)
    _, outcome = search(exact(1), max_probes=3)
    assert (outcome["low"], outcome["high"]) == (None, 25)


def test_before_any_probe_nothing_is_known():
    assert CapacitySearch(LOW, HIGH, AMPLE, 5).outcome() == {
        "capacity": None, "low": None, "high": None, "stopped": "budget",
    }  # fmt: skip


def test_search_works_without_confirmations():
    probes, outcome = search(exact(7_000), confirmations=0)
    assert outcome["capacity"] == pytest.approx(7_000, rel=0.04)
    assert len(probes) + 5 == len(search(exact(7_000))[0])


def test_search_repeats_a_rate_until_it_has_its_result():
    rates = CapacitySearch(LOW, HIGH, AMPLE, 5)
    assert [rates.next_rate(), rates.next_rate()] == [100, 100]
    with pytest.raises(ValueError, match="unexpected probe at 200: expected 100"):
        rates.add_probe(200, True)
    rates.add_probe(100, True)
    assert rates.next_rate() == 200


def test_search_ignores_results_after_its_end():
    rates = CapacitySearch(LOW, HIGH, 1, 5)
    rates.add_probe(LOW, True)
    assert rates.next_rate() is None
    with pytest.raises(ValueError, match="the search has ended"):
        rates.add_probe(200, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 10, 24, 5), "0 < low < high"),
        ((10, 10, 24, 5), "0 < low < high"),
        ((10, math.inf, 24, 5), "0 < low < high"),
        ((math.nan, 10, 24, 5), "0 < low < high"),
        ((1, 10, 0, 5), "max_probes"),
        ((1, 10, 24, -1), "confirmations"),
    ],
)
def test_search_refuses_what_it_cannot_search(arguments, message):
    with pytest.raises(ValueError, match=message):
        CapacitySearch(*arguments)


def test_search_is_deterministic():
    assert search(exact(7_000, lies={4, 9})) == search(exact(7_000, lies={4, 9}))


# What follows is simulated: searches with the default budget, and 2 % of the probes lie.

#: True slopes → the largest bias, in shares of the capacity.
BIAS = {0.01: 0.003, 0.05: 0.01, 0.15: 0.02}


@pytest.fixture(scope="module")
def errors():
    """The errors of 40 searches for each slope, however they ended."""
    found = measure_capacity_errors(40, 60_000, tuple(BIAS))
    return {each.slope: each for each in found}


@pytest.mark.parametrize("slope", BIAS)
def test_the_interval_contains_the_capacity_whatever_the_slope(errors, slope):
    """90 % are wanted; of 40 searches, 80 % are within the error of the simulation."""
    assert errors[slope].covered >= 0.8


@pytest.mark.parametrize("slope", BIAS)
def test_the_estimate_has_no_bias_whatever_the_slope(errors, slope):
    assert abs(errors[slope].bias) <= BIAS[slope]


def test_the_interval_is_as_wide_as_the_slope_requires(errors):
    widths = [errors[slope].width for slope in BIAS]
    assert widths[0] < 0.04
    assert widths == sorted(widths)


def test_steep_servers_converge_and_others_end_by_the_budget(errors):
    assert errors[0.01].converged >= 0.75
    assert errors[0.01].probes < 28
    assert errors[0.15].converged <= 0.3


def test_search_outcome_is_json():
    _, outcome = search(exact(7_000))
    assert json.loads(json.dumps(outcome)) == outcome
