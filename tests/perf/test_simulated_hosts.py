"""The simulated hosts understand what Pitwall sends and answer as the agent does."""

import time
from io import StringIO

from orchestrator.dispatch import agent_responses
from orchestrator.transport.command import build_command_line
from perf.harness.simulated_hosts import SimulatedHosts, parse_verb

JOB = "01a21c08-3150-7873-b884-d980316c8c93"


def test_a_verb_is_read_from_the_line_for_the_shell() -> None:
    argv = ["python3", "-I", "agents/a.pyz", "--root", ".", "status", JOB, "a1-r1", "--offset", "0"]
    for reads in (False, True):
        assert parse_verb(build_command_line(argv, ".pitwall", reads=reads)) == argv[5:]


def test_answers_have_the_form_of_the_agent() -> None:
    polls = StringIO()
    hosts = SimulatedHosts(polls, quiet_s=0.01)
    words = ["prepare", "--project", "p", "--commits", "aa", "--paths", "tools/x", "--machine-lock"]
    ready = hosts.answer("127.1.0.1", words)
    assert agent_responses.describe_problem(agent_responses.Ready, ready) == ""
    assert (ready["commits"], ready["present"]) == ({"aa": True}, {"tools/x": True})
    for _ in range(2):
        status = hosts.answer("127.1.0.1", ["status", JOB, "a1-r1", "--offset", "0"])
        assert agent_responses.describe_problem(agent_responses.Status, status) == ""
        time.sleep(0.02)
    assert len(polls.getvalue().splitlines()) == 1, "of the second poll"
