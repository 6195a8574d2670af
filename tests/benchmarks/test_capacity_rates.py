"""Loads at shares of a capacity, and the requests that the percentiles of an objective need."""

import pytest

from orchestrator.benchmarks.capacity_rates import (
    compute_share_rates,
    list_share_metrics,
    replace_search,
)
from orchestrator.benchmarks.load_specs import build_load_specs, list_case_metrics
from orchestrator.benchmarks.objective import count_needed_requests
from orchestrator.benchmarks.objective import parse as parse_objective
from orchestrator.benchmarks.spec import parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.metrics import METRICS, choose_deciding_metrics

SOURCE = """
version: 1
title: Search
subject:
  start: [server, "{port}"]
load:
  warmup_s: 3
  search: {SEARCH}
"""


def read(search):
    return parse(SOURCE.replace("{SEARCH}", search))


@pytest.mark.parametrize(
    ("objective", "requests"),
    [
        ("p99 < 50 ms", 1011),
        ("p99 < 50 ms and delivered >= 80 %", 1250),
        ("p50 < 50 ms and p99.9 < 1 s and delivered >= 100 %", 10_000),
        ("max < 1 s and mean < 10 ms", 2),
        ("p50 < 1 s and delivered > 0 %", 2000),
    ],
)
def test_an_objective_needs_ten_requests_beyond_each_percentile(objective, requests):
    assert count_needed_requests(parse_objective(objective)) == requests


def test_a_definition_with_too_few_requests_for_its_percentile_is_refused():
    with pytest.raises(InvalidRequestError) as caught:
        read('{objective: "p99 < 50 ms", low: 25, probe_s: 4}')
    assert "needs 1,011 requests in a probe, and low 25 gives 400 in 4 passes of 4 s" in str(
        caught.value
    )
    assert "set low to 64 or more, or probe_s to 11 or more" in str(caught.value)
    read('{objective: "p99 < 50 ms", low: 64, probe_s: 4}')
    read('{objective: "p99 < 50 ms", low: 25, probe_s: 11}')
    read('{objective: "p99 < 50 ms"}')


def test_the_shares_of_a_capacity_have_rates_that_each_tool_accepts():
    assert compute_share_rates(1234.5) == (617, 988, 1173)
    assert compute_share_rates(100.37) == (50.2, 80.3, 95.4)


def test_a_search_is_replaced_by_loads_that_know_the_percentiles_of_its_objective():
    spec = read('{objective: "p99 < 50 ms", low: 100, probe_s: 5}')
    loads = build_load_specs(replace_search(spec, compute_share_rates(200)), {})
    assert [load.rate for load in loads] == [100, 160, 190]
    assert [load.duration_s for load in loads] == pytest.approx([10.11, 1011 / 160, 1011 / 190])
    assert all((load.warmup_s, load.model, load.searching) == (3, "open", False) for load in loads)
    fast = build_load_specs(replace_search(spec, compute_share_rates(20_000)), {})
    assert [load.duration_s for load in fast] == [5, 5, 5]
    # A capacity that no search can find does not make a load endless.
    slow = build_load_specs(replace_search(spec, compute_share_rates(1)), {})
    assert max(load.duration_s for load in slow) == 40


@pytest.mark.parametrize("rates", [(), (100.0,), (100.0, 160.0, 190.0, 200.0)])
def test_other_numbers_of_rates_are_refused(rates):
    with pytest.raises(ValueError, match="expected a search and 3 rates"):
        replace_search(read('{objective: "p99 < 50 ms"}'), rates)


def test_rates_out_of_bounds_are_refused():
    with pytest.raises(ValueError, match="rate"):
        replace_search(read('{objective: "p99 < 50 ms"}'), (1.0, -1.0, 2.0))


@pytest.mark.parametrize(
    ("objective", "keys"),
    [
        ("p99 < 50 ms", ["latency.p99"]),
        ("p90 < 5 ms and p99.9 < 1 s", ["latency.p90", "latency.p99.9"]),
        ("max < 1 s", ["latency.p50"]),
    ],
)
def test_the_latencies_of_the_objective_decide_at_each_share(objective, keys):
    spec = read(f'{{objective: "{objective}", low: 300}}')
    wanted = tuple(f"capacity.at_{share}.{key}" for share in (50, 80, 95) for key in keys)
    assert spec.load.search is not None
    assert list_share_metrics(spec.load.search) == wanted
    assert all(METRICS[key].better == "lower" for key in wanted)
    primary = list_case_metrics(spec)
    assert primary == ("capacity.rate", *wanted)
    assert choose_deciding_metrics(primary, [*primary, "capacity.low"]) == wanted


def test_two_capacities_decide_nothing():
    primary = ("capacity.rate", "capacity.at_50.latency.p99")
    measured = ["capacity.rate", "capacity.low", "capacity.high", "capacity.probes"]
    assert choose_deciding_metrics(primary, measured) == ()
