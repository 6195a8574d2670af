"""What a job needs next follows from what is known of it."""

from dataclasses import replace

import pytest

from orchestrator.dispatch.plan import (
    Action,
    FailedTrial,
    Step,
    backoff_s,
    next_action,
    reasons_to_give_up,
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
def test_it_names_the_next_step(state: str, started: bool, cancelled: bool, action: Action) -> None:
    step = Step(state=state, step_started=started, cancel_requested=cancelled)
    assert next_action(step) is action


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
        (["port_in_use"], True),
    ],
)
def test_it_gives_up_what_the_next_round_would_only_repeat(
    codes: list[str], gives_up: bool
) -> None:
    reasons = reasons_to_give_up(failures(*codes))
    assert set(reasons) == ({1} if gives_up else set())
    for reason in reasons.values():
        assert codes[-1] in reason
        assert "c0ffee" in reason


def test_it_gives_up_each_case_for_itself() -> None:
    failed = [
        *failures("tool_failed", "tool_failed", case=1),
        *failures("build_failed", case=2),
        *failures("tool_failed", case=3),
    ]
    assert set(reasons_to_give_up(failed)) == {2}


def test_it_starts_the_followers_before_their_lead() -> None:
    step = Step(state="measuring", step_started=False, cancel_requested=False, has_followers=True)
    assert next_action(step) is Action.START_FOLLOWERS
    assert next_action(replace(step, followers_started=True)) is Action.START


def test_it_waits_longer_each_time_with_a_cap() -> None:
    assert [backoff_s(failures) for failures in (1, 2, 3, 10)] == [2, 4, 8, 30]
    assert [retry_s(attempt) for attempt in (1, 2, 3, 9)] == [4, 16, 64, 300]
