"""The search for a capacity: the rates it tries, and how near it comes, with fixed seeds."""

import json
import math
import random
import statistics
from dataclasses import dataclass
from itertools import pairwise

import pytest

from agents.hostagent.trials.capacity import CONFIRMED_SHARE, CapacitySearch

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
    assert list_rates(probes) == [100, 50, 25, 12.5, 6.25]
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
    assert {rate for rate, _ in confirmations} == {round(CONFIRMED_SHARE * outcome["capacity"])}
    assert all(passed for _, passed in confirmations)


def test_search_confirms_from_the_start_after_a_confirmation_has_failed():
    without, _ = search(exact(7_000))
    first = len(without) - 5
    probes, outcome = search(exact(7_000, lies={first + 3}))
    assert probes[first + 3][1] is False
    assert probes[first + 3][0] == probes[first][0]
    assert len(probes) >= first + 4 + 5
    assert {rate for rate, _ in probes[-5:]} == {round(CONFIRMED_SHARE * outcome["capacity"])}
    assert all(passed for _, passed in probes[-5:])


def test_a_failed_confirmation_lowers_the_estimate():
    """A server that holds 95 % of its capacity only for a while: found further down."""
    plain, before = search(exact(7_000))
    first = len(plain) - 5

    def tired(rate, n):
        return rate <= (7_000 if n < first else 6_000)

    _, after = search(tired)
    assert before["capacity"] == pytest.approx(7_000, rel=0.04)
    assert after["stopped"] == "converged"
    assert after["capacity"] * CONFIRMED_SHARE <= 6_000


@pytest.mark.parametrize("lie", range(18))
def test_search_survives_one_wrong_probe(lie):
    _, outcome = search(exact(7_000, lies={lie}))
    assert outcome["stopped"] == "converged"
    assert outcome["capacity"] == pytest.approx(7_000, rel=0.05)


def test_search_recovers_from_a_wrong_probe_at_the_limit():
    _, outcome = search(exact(1e9, lies={3}), high=1_000)
    assert outcome["stopped"] == "at the limit"


@pytest.mark.parametrize("max_probes", [6, 8, 14])
def test_search_keeps_its_budget_and_reports_only_confirmed_capacities(max_probes):
    probes, outcome = search(exact(7_000), max_probes=max_probes)
    assert len(probes) == max_probes
    assert (outcome["stopped"], outcome["capacity"]) == ("budget", None)


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


# What follows is simulated: 2 % noise of each probe's log rate, 2 % of the probes lie.


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSearch:
    truth: float
    probes: list
    outcome: dict

    @property
    def error(self):
        return abs(self.outcome["capacity"] / self.truth - 1)


def noisy(rng, capacity):
    def answer(rate, _n):
        passed = rng.gauss(math.log(capacity), 0.02) > math.log(rate)
        return passed != (rng.random() < 0.02)

    return answer


@pytest.fixture(scope="module")
def finished_searches():
    """Searches with an ample budget for servers whose capacity is anywhere from low to 64 low."""
    rng = random.Random(60_000)
    searches = []
    for _ in range(240):
        truth = LOW * 64 ** rng.random()
        probes, outcome = search(noisy(rng, truth))
        searches.append(FinishedSearch(truth=truth, probes=probes, outcome=outcome))
    return searches


def test_search_always_ends_with_a_confirmed_result(finished_searches):
    assert {one.outcome["stopped"] for one in finished_searches} == {"converged"}
    for one in finished_searches:
        rates = list_rates(one.probes[-5:])
        assert rates == [pytest.approx(CONFIRMED_SHARE * one.outcome["capacity"], rel=0.005)] * 5
        assert all(passed for _, passed in one.probes[-5:])


def test_search_median_error_is_about_one_per_cent(finished_searches):
    assert statistics.median(one.error for one in finished_searches) <= 0.011


def test_search_error_has_a_root_mean_square_of_one_percent(finished_searches):
    assert math.sqrt(statistics.mean(one.error**2 for one in finished_searches)) <= 0.014


def test_search_has_no_bias(finished_searches):
    leaning = statistics.mean(one.outcome["capacity"] / one.truth - 1 for one in finished_searches)
    assert abs(leaning) <= 0.003


def test_search_interval_covers_the_truth_nine_times_in_ten(finished_searches):
    covered = [one.outcome["low"] <= one.truth <= one.outcome["high"] for one in finished_searches]
    assert 0.85 <= statistics.mean(covered) <= 0.96


def test_search_interval_is_under_four_per_cent_and_holds_the_estimate(finished_searches):
    for one in finished_searches:
        low, capacity, high = (one.outcome[key] for key in ("low", "capacity", "high"))
        assert low < capacity < high < 1.04 * low


def test_beyond_the_doubling_it_takes_thirteen_to_fifteen_probes(finished_searches):
    beyond = [len(one.probes) - _doublings(one.probes) for one in finished_searches]
    assert 13 <= statistics.median(beyond) <= 15


def _doublings(probes):
    """Probes until the first one that failed, that one included."""
    rates = list_rates(probes)
    return 1 + sum(1 for _ in _while_doubled(rates))


def _while_doubled(rates):
    for earlier, later in pairwise(rates):
        if later not in (2 * earlier, earlier / 2):
            return
        yield later


def test_search_outcome_is_json(finished_searches):
    assert json.loads(json.dumps(finished_searches[0].outcome)) == finished_searches[0].outcome
