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
