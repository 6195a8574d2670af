from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.comparison import Verdict, compare_blocks
from orchestrator.stats.multiple_testing import adjust, find_worst_verdict, judge_matrix

#: The primary metrics of all cases.
RATE = defaultdict(lambda: ("rate",))
RATE_AND_P50 = defaultdict(lambda: ("rate", "p50"))
SPREAD = (0.99, 1.01, 1.0, 1.005, 0.995, 1.002)


def compare_shifted(change, *, spread=1.0):
    contender = [100 * (1 + change) * (1 + (one - 1) * spread) for one in SPREAD]
    return compare_blocks([100.0] * len(SPREAD), contender, better="higher", margin=0.03)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_p_values_are_adjusted_like_the_reference(p_values):
    assert adjust(p_values) == pytest.approx(stats.false_discovery_control(p_values).tolist())


def test_unknown_p_values_stay_unknown_and_are_not_counted():
    assert adjust([None, 0.02, None, 0.04]) == [None, pytest.approx(0.04), None, 0.04]
    assert adjust([]) == []


def test_invalid_p_values_are_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        adjust([0.5, 1.5])


def test_the_worst_verdict_needs_most_attention():
    assert (
        find_worst_verdict([Verdict.EQUIVALENT, Verdict.REGRESSED, Verdict.IMPROVED]) == "regressed"
    )
    assert find_worst_verdict([Verdict.EQUIVALENT, Verdict.IMPROVED]) == "improved"
    assert find_worst_verdict([Verdict.IMPROVED, Verdict.INCONCLUSIVE]) == "inconclusive"
    assert find_worst_verdict([]) == "inconclusive"


def test_each_case_is_judged_by_its_own_primary_metrics():
    metrics = {"rate": compare_shifted(-0.2), "p99": compare_shifted(0.2)}
    matrix = judge_matrix(
        {"closed": metrics, "open": metrics}, primary={"closed": ("rate",), "open": ("p99",)}
    )
    assert matrix.cases == {"closed": "regressed", "open": "improved"}
    assert list(matrix.cells) == [("closed", "rate"), ("open", "p99")]


def test_a_case_is_as_bad_as_its_worst_primary_metric():
    matrix = judge_matrix(
        {
            "small": {
                "rate": compare_shifted(-0.2),
                "p50": compare_shifted(0.0),
                "p99": compare_shifted(0.3),
            },
            "large": {
                "rate": compare_shifted(0.0),
                "p50": compare_shifted(0.1),
                "p99": compare_shifted(-0.4),
            },
        },
        primary=RATE_AND_P50,
    )
    assert matrix.cases == {"small": Verdict.REGRESSED, "large": Verdict.IMPROVED}
    assert matrix.verdict == Verdict.REGRESSED
    assert ("large", "p99") not in matrix.cells


def test_the_headline_names_the_largest_change_of_the_verdict():
    matrix = judge_matrix(
        {
            "small": {"rate": compare_shifted(-0.1)},
            "large": {"rate": compare_shifted(-0.2)},
            "odd": {"rate": compare_shifted(0.5)},
        },
        primary=RATE,
    )
    headline = matrix.headline
    assert headline.cell == ("large", "rate")
    assert (headline.metrics, headline.open_metrics, headline.alike) == (3, 0, 2)
    assert headline.counts == {Verdict.REGRESSED: 2, Verdict.IMPROVED: 1}
    assert headline.cases == 3


def test_a_single_change_among_many_cases_is_not_significant():
    lone = compare_shifted(-0.05, spread=3)
    assert lone.verdict == Verdict.REGRESSED
    quiet = {f"case {number}": {"rate": compare_shifted(0.0)} for number in range(60)}
    matrix = judge_matrix({"lone": {"rate": lone}, **quiet}, primary=RATE)
    assert matrix.q_values["lone", "rate"] > 0.05
    assert matrix.cases["lone"] == Verdict.INCONCLUSIVE
    alone = judge_matrix({"lone": {"rate": lone}}, primary=RATE)
    assert alone.cases["lone"] == Verdict.REGRESSED


def test_a_case_without_a_primary_metric_is_inconclusive():
    matrix = judge_matrix({"small": {"p99": compare_shifted(-0.5)}}, primary=RATE)
    assert matrix.cases == {"small": Verdict.INCONCLUSIVE}
    assert matrix.headline.cell is None


def test_an_empty_comparison_is_inconclusive():
    matrix = judge_matrix({}, primary=RATE)
    assert matrix.verdict == Verdict.INCONCLUSIVE
    assert matrix.headline.cases == 0


def test_changes_are_counted_before_and_after_adjustment():
    lone = {f"case-{number}": {"rate": compare_shifted(0.0)} for number in range(300)}
    matrix = judge_matrix({**lone, "odd": {"rate": compare_shifted(-0.04, spread=3)}}, primary=RATE)
    assert (matrix.changed, matrix.survived) == (1, 0)
    sure = judge_matrix(
        {"one": {"rate": compare_shifted(-0.2)}, "two": {"rate": compare_shifted(0.2)}},
        primary=RATE,
    )
    assert (sure.changed, sure.survived) == (2, 2)


def test_a_p_value_after_interim_analyses_is_adjusted():
    close = compare_shifted(-0.05, spread=4)
    assert 0.05 / 4 / 3 < close.p_value < 0.015
    cases = {
        "one": {"rate": close},
        "other": {"rate": compare_shifted(0.0)},
        "third": {"rate": compare_shifted(0.0)},
    }
    once = judge_matrix(cases, primary=RATE)
    assert once.cases["one"] == Verdict.REGRESSED
    often = judge_matrix(cases, primary=RATE, spending={"one": Spending(analyses=5)})
    assert often.cases["one"] == Verdict.INCONCLUSIVE
    assert often.q_values["one", "rate"] == pytest.approx(5 * once.q_values["one", "rate"])


def test_a_later_run_needs_more_evidence_for_each_verdict():
    cases = {
        "changed": {"rate": compare_shifted(-0.05, spread=3)},
        "equal": {"rate": compare_shifted(0.0, spread=2.5)},
        "sure": {"rate": compare_shifted(0.0)},
    }
    once = judge_matrix(cases, primary=RATE)
    assert once.cases == {"changed": "regressed", "equal": "equivalent", "sure": "equivalent"}
    later = judge_matrix(cases, primary=RATE, spending=dict.fromkeys(cases, Spending(runs=4)))
    assert later.cases == {"changed": "inconclusive", "equal": "inconclusive", "sure": "equivalent"}


def test_a_trivial_change_that_may_be_chance_is_only_equivalent():
    small = compare_shifted(0.01, spread=0.9)
    assert small.verdict == Verdict.TRIVIAL
    alone = judge_matrix({"lone": {"rate": small}}, primary=RATE)
    assert alone.cases["lone"] == Verdict.TRIVIAL
    quiet = {f"case {number}": {"rate": compare_shifted(0.0)} for number in range(60)}
    among = judge_matrix({"lone": {"rate": small}, **quiet}, primary=RATE)
    assert among.cases["lone"] == Verdict.EQUIVALENT
    assert among.headline.verdict == Verdict.EQUIVALENT
