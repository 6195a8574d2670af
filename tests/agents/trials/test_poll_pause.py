"""How long the agent asks not to be polled, in a round of real trials."""

import pytest

from tests.agents.support import FAKE_TOOL, AgentHost, a_plan, a_trial

#: A tool that takes half a second longer than the second that the plan expects.
SLOW_TOOL = FAKE_TOOL + "import time; time.sleep(1.5)"


def test_polls_pause_until_the_next_trial_ends_as_late_as_the_one_before(host: AgentHost) -> None:
    tool = host.send_tool(SLOW_TOOL)
    step = host.run_round(a_plan(*[a_trial(tool, id=name) for name in ("t1", "t2")]))
    first, second = (each for each in step.named("phase") if each["phase"] == "measuring")
    assert first["quiet_s"] == pytest.approx(1.5, abs=0.2)
    took_s = step.named("trial_done")[0]["t"] - first["t"]
    assert took_s > 1.5
    assert second["quiet_s"] == pytest.approx(took_s + 0.05, abs=0.2)


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
