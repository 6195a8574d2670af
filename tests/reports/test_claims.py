"""Claims of an original report are decided from intervals, which are right together."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.claim_exports import build_claim_notes, format_measured
from orchestrator.reports.claim_spec import Claim
from orchestrator.reports.claims import (
    MOST_COMPARISONS,
    Conclusion,
    JudgedClaim,
    JudgedClaims,
    judge_claims,
)
from orchestrator.reports.pivot_model import Observation, Sample
from orchestrator.reports.report_spec import from_data

FACTORS = (0.99, 1.0, 1.01, 1.0)


def observe(
    protocol: str,
    *rates: float,
    host: str = "a",
    commit: str = "new",
    validity: str = "valid",
    source: str = "measured",
) -> Observation:
    """A case with a run of one trial for each rate."""
    samples = [
        Sample(
            state="measured",
            validity=validity,
            reasons=[],
            message="",
            values={"requests.rate": rate, "latency.p99": 0.018},
            run=run,
        )
        for run, rate in enumerate(rates, start=1)
    ]
    place = {"protocol": protocol, "host": host, "commit": commit, "source": source}
    return Observation(place=place, samples=samples)


def around(protocol: str, rate: float, **more: Any) -> Observation:
    return observe(protocol, *(rate * each for each in FACTORS), **more)


def claim(relation: str, **more: Any) -> Claim:
    fields = {
        "claim": "It is faster.",
        "source": "Table 1",
        "metric": "requests.rate",
        "cases": 'protocol == "h2"',
        "relation": relation,
    }
    sides = {"than", "value", "previous_commit"} & set(more)
    return Claim.model_validate(
        {**fields, **({} if sides else {"than": 'protocol == "h1"'}), **more}
    )


def judge_all(*claims: Claim, seen: list[Observation], commits: tuple[str, ...] = ("new",)):
    return judge_claims(claims, seen, commits=commits, axes=["protocol"])


def judge(one: Claim, *seen: Observation, **more: Any) -> JudgedClaim:
    (judged,) = judge_all(one, seen=list(seen), **more).claims
    return judged


@pytest.mark.parametrize(
    ("relation", "more", "rate", "conclusion"),
    [
        ("greater", {}, 1200, Conclusion.HOLDS),
        ("greater", {}, 800, Conclusion.FAILS),
        ("greater", {}, 1003, Conclusion.OPEN),
        ("less", {}, 800, Conclusion.HOLDS),
        ("less", {}, 1200, Conclusion.FAILS),
        ("at_least", {"times": 2}, 2200, Conclusion.HOLDS),
        ("at_least", {"times": 2}, 1900, Conclusion.FAILS),
        ("at_least", {"times": 2}, 2010, Conclusion.OPEN),
        ("at_most", {"times": 0.5}, 480, Conclusion.HOLDS),
        ("within", {"percent": 10}, 1030, Conclusion.HOLDS),
        ("within", {"percent": 10}, 1200, Conclusion.FAILS),
        ("within", {"percent": 10}, 1095, Conclusion.OPEN),
    ],
)
def test_a_claim_is_decided_from_the_interval(
    relation: str, more: Mapping[str, Any], rate: float, conclusion: Conclusion
) -> None:
    judged = judge(claim(relation, **more), around("h2", rate), around("h1", 1000))
    assert judged.conclusion is conclusion
    assert judged.value == pytest.approx(rate / 1000)
    assert judged.low is not None
    assert judged.high is not None
    assert judged.low < judged.value < judged.high
    assert " times (" in format_measured(judged)


def test_a_value_has_the_unit_of_the_claim() -> None:
    limit = {"metric": "latency.p99", "value": 18, "unit": "ms"}
    seen = observe("h2", 1, 1, 1)
    # Exactly 18 ms in each run: neither more nor less, in spite of rounding.
    assert judge(claim("at_most", **limit), seen).conclusion is Conclusion.HOLDS
    judged = judge(claim("less", **limit), seen)
    assert judged.conclusion is Conclusion.FAILS
    assert (judged.value, judged.unit) == (pytest.approx(18), "ms")


def test_too_few_runs_decide_nothing() -> None:
    judged = judge(claim("greater"), observe("h2", 9000, 9001), around("h1", 10))
    assert judged.conclusion is Conclusion.OPEN
    assert (judged.value, judged.low) == (pytest.approx(900, rel=0.01), None)
    assert "fewer than 3 runs" in judged.reason
    invalid = judge(claim("greater"), around("h2", 9000, validity="invalid"), around("h1", 10))
    assert invalid.conclusion is Conclusion.OPEN
    assert invalid.value is None
    assert invalid.reason.startswith("invalid")


def test_values_of_all_sizes_leave_a_claim_open() -> None:
    judged = judge(
        claim("greater"), observe("h2", 1e-300, 1, 1e300), observe("h1", 1e300, 1, 1e-300)
    )
    assert judged.conclusion is Conclusion.OPEN
    assert judged.low is not None
    assert judged.high is not None
    assert math.isfinite(judged.high)


def test_a_case_must_beat_each_of_several() -> None:
    seen = [around("h2", 1200), around("h1", 1000), around("h3", 1201)]
    judged = judge(claim("greater", than='protocol != "h2"'), *seen)
    assert judged.conclusion is Conclusion.OPEN
    assert (judged.comparisons, judged.cases, judged.than) == (2, "h2", "h3")
    seen[2] = around("h3", 1100)
    assert judge(claim("greater", than='protocol != "h2"'), *seen).conclusion is Conclusion.HOLDS
    seen[2] = around("h3", 1400)
    assert judge(claim("greater", than='protocol != "h2"'), *seen).conclusion is Conclusion.FAILS


def test_more_claims_need_more_evidence() -> None:
    """Bonferroni: with the number of comparisons the intervals grow, and the claim stays open."""
    seen = [around("h2", 1030), around("h1", 1000)]
    alone = judge_all(claim("greater"), seen=seen)
    many = judge_all(*[claim("greater")] * 40, seen=seen)
    assert alone.confidence == pytest.approx(0.95)
    assert (many.comparisons, many.confidence) == (40, pytest.approx(1 - 0.05 / 40))
    assert alone.claims[0].conclusion is Conclusion.HOLDS
    assert {each.conclusion for each in many.claims} == {Conclusion.OPEN}


def test_the_interval_is_that_of_a_report_for_a_single_claim() -> None:
    """Welch by hand: four runs on each side, at 95 %."""
    judged = judge(claim("greater"), around("h2", 1200), around("h1", 1000))
    logs = [math.log(each) for each in FACTORS]
    mean = sum(logs) / 4
    error = math.sqrt(2 * sum((each - mean) ** 2 for each in logs) / 3 / 4)
    reach = 2.446912 * error
    assert judged.low == pytest.approx(1.2 * math.exp(-reach), rel=1e-6)
    assert judged.high == pytest.approx(1.2 * math.exp(reach), rel=1e-6)


def test_a_ratio_within_a_contest_is_paired() -> None:
    """A drift of the machine affects both sides of a block, so the ratio has no noise of it."""
    drift = (1.0, 1.5, 0.8, 1.2, 0.7, 1.1)
    pair = [observe("h2", *(1050 * each for each in drift)),
            observe("h1", *(1000 * each for each in drift))]  # fmt: skip
    unpaired = judge_all(claim("greater"), seen=pair)
    assert unpaired.claims[0].conclusion is Conclusion.OPEN
    assert not unpaired.claims[0].paired
    contest = [
        replace(
            seen,
            contest="protocol",
            samples=[replace(each, block=each.run) for each in seen.samples],
        )
        for seen in pair
    ]
    judged = judge_all(claim("greater"), seen=contest)
    assert judged.claims[0].conclusion is Conclusion.HOLDS
    assert judged.claims[0].paired
    assert judged.claims[0].value == pytest.approx(1.05)
    assert "Ratios are paired: they are those within common blocks." in build_claim_notes(judged)
    assert not any("are paired" in note for note in build_claim_notes(unpaired))
    # A ratio without a value is neither.
    missing = claim("greater", cases='protocol == "h3"')
    invalid = around("h3", 1000, validity="invalid")
    with_missing = judge_all(claim("greater"), missing, seen=[*contest, invalid])
    assert with_missing.claims[1].value is None
    assert build_claim_notes(with_missing) == build_claim_notes(judged)


def test_hosts_are_judged_separately_and_references_never() -> None:
    seen = [
        *(around("h2", rate, host=host) for host, rate in (("a", 1200), ("b", 800))),
        *(around("h1", 1000, host=host) for host in "ab"),
        around("h1", 1, host="laptop", source="published"),
    ]
    judged = judge_all(claim("greater"), seen=seen)
    assert [(each.host, each.conclusion) for each in judged.claims] == [
        ("a", Conclusion.HOLDS),
        ("b", Conclusion.FAILS),
    ]


def test_a_commit_is_compared_with_the_one_before() -> None:
    seen = [
        *(around("h2", rate, commit=at) for at, rate in (("new", 1400), ("old", 1000))),
        around("h2", 9999, commit="older"),
        around("h1", 9999, commit="old"),
    ]
    one = claim("greater", previous_commit=True)
    judged = judge(one, *seen, commits=("new", "old", "older"))
    assert judged.conclusion is Conclusion.HOLDS
    assert judged.value == pytest.approx(1.4)
    assert judge(one, seen[0]).reason == "an earlier commit was not measured"


def test_selections_that_are_too_wide_are_not_compared() -> None:
    seen = [observe(f"p{n}", 1, 1, 1) for n in range(40)]
    wide = claim("greater", cases='protocol != ""', than='protocol != ""')
    judged = judge(wide, *seen)
    assert (judged.conclusion, judged.comparisons) == (Conclusion.OPEN, 0)
    assert str(MOST_COMPARISONS) in judged.reason
    assert judge_all(seen=seen) == JudgedClaims()


def test_an_unknown_name_is_refused_with_its_path() -> None:
    with pytest.raises(InvalidRequestError, match=r"claims\[0\].than: .*colour"):
        judge(claim("greater", than='colour == "red"'), around("h2", 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"than": ""}, "claims[0].than: expected one of than, previous_commit and value"),
        ({"value": 3}, "claims[0].than: expected one of than, previous_commit and value"),
        ({"relation": "within"}, "claims[0].percent: the relation within needs it"),
        ({"percent": 5}, "claims[0].percent: the relation within needs it"),
        ({"unit": "ms"}, "claims[0].unit: expected one of 1/s"),
        ({"unit": "req/s"}, "claims[0].unit: only a value has one"),
        ({"than": "", "value": 3, "times": 2}, "claims[0].times: write the value itself"),
        ({"times": 0}, "claims[0].times: expected greater than 0"),
        ({"relation": "better"}, "claims[0].relation: expected"),
        ({"metric": "speed"}, "claims[0].metric: there is no metric speed"),
        ({"cases": "protocol = 1"}, "claims[0].cases: "),
        ({"souce": "x"}, "claims[0]"),
    ],
)
def test_a_claim_with_an_error_names_its_field(changes: dict[str, Any], message: str) -> None:
    good = {
        "claim": "It is faster.",
        "source": "Table 1",
        "metric": "requests.rate",
        "cases": 'protocol == "h2"',
        "relation": "greater",
        "than": 'protocol == "h1"',
    }
    table = {"rows": ["protocol"], "columns": [{"metric": "requests.rate"}]}
    data = {"version": 1, "title": "T", "tables": [table], "claims": [{**good, **changes}]}
    with pytest.raises(InvalidRequestError) as refused:
        from_data(data)
    assert message in str(refused.value)
    assert from_data({**data, "claims": [good]}).claims[0].times == 1
