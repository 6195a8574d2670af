"""What a job needs next follows from what is known of it."""

from dataclasses import replace

import pytest

from orchestrator.dispatch.plan import (
    Action,
    FailedTrial,
    Step,
    choose_action,
    compute_backoff_s,
    find_abandoned_cases,
    retry_s,
)


@pytest.mark.parametrize(
    ("state", "started", "cancelled", "action"),
    [
        ("preparing", False, False, Action.PREPARE),
        ("measuring", False, False, Action.START),
        ("measuring", True, False, Action.POLL),
        ("preparing", False, True, Action.CANCEL),
        ("measuring", True, True, Action.CANCEL),
    ],
)
def test_the_next_step_is_returned(
    state: str, started: bool, cancelled: bool, action: Action
) -> None:
    step = Step(state=state, step_started=started, cancel_requested=cancelled)
    assert choose_action(step) is action


def failures(*codes: str, case: int = 1) -> list[FailedTrial]:
    return [
        FailedTrial(case=case, commit="c0ffee", code=code, message=f"{code}!") for code in codes
    ]


@pytest.mark.parametrize(
    ("codes", "gives_up"),
    [
        ([], False),
        (["tool_failed", "server_died"], False),
        (["tool_failed", "server_died", "tool_failed"], True),
        (["build_failed"], True),
        (["server_did_not_start"], True),
        (["port_in_use"], False),
        (["wrong_build"], True),
        (["prepare_failed"], True),
    ],
)
def test_cases_that_would_fail_again_are_skipped(codes: list[str], gives_up: bool) -> None:
    reasons = find_abandoned_cases(failures(*codes))
    assert set(reasons) == ({1} if gives_up else set())
    for reason in reasons.values():
        assert codes[-1] in reason
        assert "c0ffee" in reason


def test_each_case_is_skipped_independently() -> None:
    failed = [
        *failures("tool_failed", "tool_failed", case=1),
        *failures("build_failed", case=2),
        *failures("tool_failed", case=3),
    ]
    assert set(find_abandoned_cases(failed)) == {2}


def test_followers_start_before_their_lead() -> None:
    step = Step(state="measuring", step_started=False, cancel_requested=False, has_followers=True)
    assert choose_action(step) is Action.START_FOLLOWERS
    assert choose_action(replace(step, followers_started=True)) is Action.START


def test_delays_between_polls_grow_to_a_maximum() -> None:
    assert [compute_backoff_s(failures) for failures in (1, 2, 3, 10)] == [2, 4, 8, 30]
    assert [retry_s(attempt) for attempt in (1, 2, 3, 9)] == [4, 16, 64, 300]
