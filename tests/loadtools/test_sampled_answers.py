"""Which sampled answers are a reason against a trial, and which servers vary their answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from orchestrator.loadtools.model import Level, LoadSpec
from orchestrator.loadtools.sampled_answers import CHECKS, describe_first_answer

from .sampled import answer, phases
from .test_validity import evidence

SPEC = LoadSpec(path="/", connections=10, duration_s=1.0)


def find_reasons(
    seen: Sequence[Mapping[str, Any]], spec: LoadSpec = SPEC, **answers: Any
) -> list[tuple[str, str]]:
    found = evidence(spec=spec, result={"answers": {"seen": seen, **answers}})
    reasons = [reason for check in CHECKS if (reason := check(found)) is not None]
    return [(each.code, each.message.partition(":")[0]) for each in reasons]


@pytest.mark.parametrize(
    ("before", "during", "after"),
    [
        ("xxx", "xxx", "x"),
        ("xyz", "abc", "d"),  # an id
        ("xxx", "abc", "d"),  # the time in seconds
        ("xxx", "xa", "a"),  # the same, in a short load
        ("xxx", "", "x"),
    ],
)
def test_bodies_that_vary_by_themselves_are_no_reason(before: str, during: str, after: str) -> None:
    assert find_reasons(phases(before, during, after)) == []


@pytest.mark.parametrize(
    ("before", "during", "after", "count"),
    [("xxx", "xa", "x", 1), ("xxx", "ab", "x", 2), ("xxx", "aa", "a", 2), ("x", "aa", "", 2)],
)
def test_bodies_that_only_the_load_changes_are_a_soft_reason(
    before: str, during: str, after: str, count: int
) -> None:
    ((code, message),) = find_reasons(phases(before, during, after))
    assert code == "answers_changed"
    assert f"another body of the same length (13 bytes) {count} times in 2 sampled" in message


def test_other_parts_are_compared_if_bodies_vary() -> None:
    seen = [*phases("xyz", "", "d"), answer("during", "e", media_type="text/html")]
    assert "media type text/html instead of text/plain 1 times" in find_reasons(seen)[0][1]
    seen = [*phases("xyz", "", "d"), answer("during", "e", length=5)]
    assert "a body of 5 instead of 13 bytes 1 times" in find_reasons(seen)[0][1]
    seen = [*phases("xyz", "", ""), answer("after", length=12), answer("during", "e", length=12)]
    assert find_reasons(seen) == []


def test_declared_bodies_must_be_equal_in_all_phases() -> None:
    declared = LoadSpec(path="/", connections=10, duration_s=1.0, volatile=())
    assert find_reasons(phases("xxx", "xx", "x"), declared) == []
    for seen in (phases("xyx", "x", "x"), phases("xxx", "y", "x"), phases("xxx", "x", "y")):
        ((code, message),) = find_reasons(seen, declared)
        assert code == "body_changed"
        assert message.startswith("1 of 5 answers of the agent's own requests had another body")
    ((code, message),) = find_reasons(phases("x", "", ""), declared, volatile_problem="too slow")
    assert (code, message) == ("body_changed", "too slow")


def test_an_answer_without_the_id_of_its_request_is_a_hard_reason_if_the_server_returns_ids() -> (
    None
):
    mixed = answer("during", echoes=False)
    assert find_reasons([answer("before", echoes=False), mixed]) == []
    assert find_reasons([answer("before", echoes=True), answer("during", echoes=True)]) == []
    assert find_reasons([answer("before", echoes=True), mixed])[0][0] == "answer_mixed"
    refused = answer("during", echoes=False, status=503)
    assert "answer_mixed" not in dict(find_reasons([answer("before", echoes=True), refused]))


def test_closed_connections_are_a_reason_unless_they_are_wanted() -> None:
    seen = [answer("before"), answer("during", closes=True)]
    ((code, message),) = find_reasons(seen)
    assert code == "connections_closed"
    assert message.endswith("1 of 1 sampled answers, and not before the load")
    apart = LoadSpec(path="/", connections=10, duration_s=1.0, keepalive=False)
    assert find_reasons(seen, apart) == []


def test_a_wrong_answer_to_a_check_is_a_hard_reason() -> None:
    seen = [answer("during", count=3), answer("during", check="1", problem="status 500")]
    ((code, message),) = find_reasons(seen)
    assert code == "wrong_under_load"
    assert message.startswith("1 of 4 sampled answers were wrong; check 1 during the load")


def test_a_slow_first_answer_and_hits_of_a_cache_are_notes() -> None:
    slow = {"first_s": 0.3, "later_s": 0.001, "seen": [answer("during", count=4, cached=True)]}
    first, second = describe_first_answer(slow)
    assert first.startswith("The first answer took 300 ms, later ones before the load 1.00 ms.")
    assert second.startswith("Headers of 4 of 4 sampled answers")
    assert describe_first_answer({"first_s": 0.04, "later_s": 0.001, "seen": []}) == []
    assert describe_first_answer({"first_s": 0.3, "later_s": 0.2, "seen": []}) == []


def test_only_a_changed_answer_that_was_not_defined_is_soft() -> None:
    levels = {
        reason.code: reason.level
        for seen in (
            [answer("before"), answer("during", "y")],
            [answer("before"), answer("during", problem="status 500")],
            [answer("before"), answer("during", closes=True)],
        )
        for check in CHECKS
        if (reason := check(evidence(result={"answers": {"seen": seen}})))
    }
    assert levels == {
        "answers_changed": Level.SUSPECT,
        "wrong_under_load": Level.INVALID,
        "connections_closed": Level.SUSPECT,
    }
