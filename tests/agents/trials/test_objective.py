"""Whether a probe meets the objective of a search."""

from typing import Any

import pytest

from agents.hostagent.readers.request_counter import RequestCounter
from agents.hostagent.step.plan import Objective
from agents.hostagent.trials.objective import Probe, evaluate


def rows(*latencies_us: int, bad: int = 0) -> dict[str, Any]:
    counter = RequestCounter(0.0)
    for us in latencies_us:
        counter.add(0.0, us / 1e6, us, True, 200, 1)
    if bad:
        counter.add(0.0, 0.1, 1, False, 500, 1, count=bad)
    return counter.rows_json()


#: Nine of ten in 1 ms, one in 100 ms.
MOST_FAST = (1000,) * 9 + (100_000,)
CASES = {
    "median": (rows(*MOST_FAST), ("latency.p50", "<", 0.01), True),
    "p90": (rows(*MOST_FAST), ("latency.p90", "<=", 0.001), True),
    "p99": (rows(*MOST_FAST), ("latency.p99", "<", 0.1), False),
    "max": (rows(*MOST_FAST), ("latency.max", "<=", 0.1), True),
    "mean": (rows(*MOST_FAST), ("latency.mean", "<", 0.011), True),
    "nothing": (rows(), ("latency.p50", "<", 10.0), False),
    "nothing but failures": (rows(bad=5), ("success", ">", 0.0), False),
    "success": (rows(*MOST_FAST, bad=10), ("success", ">=", 0.5), True),
    "few succeed": (rows(*MOST_FAST, bad=11), ("success", ">=", 0.5), False),
    "delivered": (rows(*MOST_FAST), ("delivered", ">=", 0.5), True),
    "few delivered": (rows(*MOST_FAST), ("delivered", ">", 0.5), False),
}


@pytest.mark.parametrize(("reduced", "term", "holds"), CASES.values(), ids=CASES)
def test_objective_is_evaluated_on_a_probe_of_twenty_requests(
    reduced: dict[str, Any], term: tuple[str, str, float], holds: bool
) -> None:
    verdict = evaluate([Objective(*term)], Probe(reduced, None, due=20))
    assert verdict.passed is holds
    assert term[0] in verdict.reason


def test_objective_counts_requests_without_a_response_as_failed() -> None:
    term = Objective("success", ">=", 0.9)
    assert evaluate([term], Probe(rows(*MOST_FAST), 0, due=10)).passed
    assert not evaluate([term], Probe(rows(*MOST_FAST), 2, due=10)).passed


def test_objective_is_evaluated_on_all_passes_of_a_probe() -> None:
    """Each pass alone would meet it, or miss it."""
    term = Objective("latency.p90", "<", 0.05)
    fast, slow = rows(*(1000,) * 10), rows(*(1000,) * 8, 100_000, 100_000)
    passes = [Probe(each, 0, due=10) for each in (fast, slow)]
    assert not evaluate([term], passes[1]).passed
    merged = Probe.merge([Probe(each, 0, due=10) for each in (slow, fast)])
    assert evaluate([term], merged).passed
    assert merged.value("delivered") == 1
    assert merged.value("latency.mean") == pytest.approx((18 * 0.001 + 2 * 0.1) / 20)


def test_objective_names_the_term_that_was_missed() -> None:
    terms = [Objective("latency.p50", "<", 0.5), Objective("latency.p99", "<", 0.05)]
    verdict = evaluate(terms, Probe(rows(*MOST_FAST), None, due=10))
    assert verdict == (False, "latency.p99 0.1 is not < 0.05")


def test_an_unknown_objective_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cpu\.total"):
        evaluate([Objective("cpu.total", "<", 1.0)], Probe(rows(1), None, due=1))
