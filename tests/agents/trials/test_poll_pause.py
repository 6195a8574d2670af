"""How long the agent asks not to be polled, in a round of real trials."""

from types import SimpleNamespace
from typing import cast

import pytest

from agents.hostagent.step.plan import Trial
from agents.hostagent.trials import poll_pause
from agents.hostagent.trials.poll_pause import (
    FIRST_END_S,
    FIRST_START_S,
    LONGEST_END_S,
    LONGEST_SLACK_S,
    SLACK_S,
    PollPause,
)
from tests.agents.support import FAKE_TOOL, AgentHost, a_plan, a_trial

#: A tool that takes half a second longer than the second that the plan expects.
SLOW_TOOL = FAKE_TOOL + "import time; time.sleep(1.5)"


def build_trial() -> Trial:
    """A trial with a load of a second."""
    loads = [SimpleNamespace(wall_limit_s=60.0)]
    return cast(Trial, SimpleNamespace(expected_s=1.0, cooldown_s=0.0, search=None, loads=loads))


def test_polls_pause_until_the_next_trial_ends_as_late_as_the_one_before(host: AgentHost) -> None:
    tool = host.send_tool(SLOW_TOOL)
    step = host.run_round(a_plan(*[a_trial(tool, id=name) for name in ("t1", "t2")]))
    first, second = (each for each in step.named("phase") if each["phase"] == "measuring")
    assert 1.0 < first["quiet_s"] <= 1.0 + FIRST_END_S + SLACK_S
    took_s = step.named("trial_done")[0]["t"] - first["t"]
    longest_s = 1.0 + LONGEST_END_S + SLACK_S
    assert 1.0 + FIRST_END_S < second["quiet_s"] <= min(took_s + 0.1, longest_s)


@pytest.mark.parametrize(("cooldown_s", "slack_s"), [(0.0, SLACK_S), (3.0, LONGEST_SLACK_S)])
def test_polls_come_later_if_a_cooldown_follows(
    host: AgentHost, cooldown_s: float, slack_s: float
) -> None:
    trial = a_trial(host.send_tool(), cooldown_s=cooldown_s)
    step = host.run_round(a_plan(trial))
    (loading,) = (each for each in step.named("phase") if each["phase"] == "measuring")
    longest_s = 1.0 + FIRST_END_S + slack_s
    assert longest_s - 0.2 < loading["quiet_s"] <= longest_s


@pytest.mark.parametrize(("expected_s", "pauses"), [(1.0, True), (10.0, False)])
def test_a_short_load_is_not_polled_when_it_begins(
    host: AgentHost, expected_s: float, *, pauses: bool
) -> None:
    trial = a_trial(host.send_tool(), expected_s=expected_s)
    step = host.run_round(a_plan(trial, {**trial, "id": "t2"}))
    started = step.named("trial_started")[1]
    loading = next(
        each
        for each in step.named("phase")
        if each["phase"] == "measuring" and each["trial"] == "t2"
    )
    ended = step.named("trial_done")[0]
    asked_until = ended["t"] + ended["quiet_s"]
    assert started["t"] <= asked_until
    assert (asked_until > loading["t"] + 0.5) is pauses


def test_one_slow_end_does_not_move_the_next_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(poll_pause, "time", SimpleNamespace(monotonic=lambda: now_s))
    trial, pause, announced = build_trial(), PollPause(), []
    for end_s in (0.2, 0.6, *[0.1] * 5, *[9.0] * 3, 0.1):
        pause.begin_loads(trial)
        announced.append(pause.left_s())
        now_s += 1.0 + end_s
        pause.end(trial, 0.0)
    expected = [FIRST_END_S, 0.2, 0.6, 0.2, 0.2, *[0.1] * 5, LONGEST_END_S]
    assert announced == pytest.approx([1.0 + end_s + SLACK_S for end_s in expected])


def test_one_slow_start_does_not_move_the_next_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(poll_pause, "time", SimpleNamespace(monotonic=lambda: now_s))
    trial, pause, announced = build_trial(), PollPause(), []
    for start_s in (1.0, 1.5, 1.2, 30.0, 1.1, 1.1):
        pause.announce(trial, 0.0)
        announced.append(pause.left_s())
        now_s += start_s
        pause.begin_loads(trial)
    expected = [FIRST_START_S, 1.0, 1.5, 1.2, 1.5, 1.2]
    assert announced == pytest.approx(
        [start_s + 1.0 + FIRST_END_S + SLACK_S for start_s in expected]
    )
