"""A host may answer anything: what has not the form of an answer is an error of that host."""

import json
from typing import Any

import pytest

from agents.hostagent.platform.topology import Core, Topology
from orchestrator.dispatch.agent import Agent, AgentError
from orchestrator.transport.fake import FakeTransport, build_success

STATUS = {"alive": True, "started": True, "now": 5.0, "offset": 0, "dropped": 0, "events": []}
TOPOLOGY = Topology((Core((0, 4), clock=0), Core((1,), others=(5,)))).as_json()
FACTS = {"facts": {"hostname": "h", "threads": 4}}


def build_agent(response: Any) -> Agent:
    transport = FakeTransport()
    data = response if isinstance(response, bytes) else json.dumps(response).encode()
    transport.answer(("python3",), build_success(data))
    return Agent(transport, python="python3")


@pytest.mark.parametrize(
    ("response", "where"),
    [
        ({**STATUS, "events": None}, "events"),
        ({**STATUS, "events": [{"event": "phase"}]}, r"events\.0\.t"),
        ({**STATUS, "events": [{"t": 1.0, "event": "trial_done", "trial": 5}]}, "trial"),
        ({**STATUS, "events": [{"t": 1.0, "event": "listening", "port": 10**9}]}, "port"),
        ({**STATUS, "now": 1e300}, "now"),
        ({**STATUS, "offset": -1}, "offset"),
        ({}, "alive"),
        (b'{"alive": NaN}', "no answer"),
        (b"[" * 100_000, "no answer"),
        ([], "JSON object"),
        ({"error": "x"}, "^x$"),
        ({"error": {"message": " "}}, "failed without a message"),
        ({"error": {}}, "failed without a message"),
    ],
)
def test_an_invalid_status_is_an_error_of_the_host(response: Any, where: str) -> None:
    with pytest.raises(AgentError, match=where):
        build_agent(response).status("j", "s", 0)


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [],
        {"threads": "4"},
        {"tools": {"oha": 5}},
        {"cores": -1},
        {"topology": {"cores": [{"cpus": ["0"]}]}},
        {"topology": {**TOPOLOGY, "cores": TOPOLOGY["cores"] * 3000}},
    ],
)
def test_invalid_facts_are_an_error_of_the_host(facts: Any) -> None:
    with pytest.raises(AgentError, match="facts"):
        build_agent({"facts": facts}).facts()


def test_valid_responses_are_accepted_with_additional_fields() -> None:
    response = {**STATUS, "events": [{"t": 1, "event": "tuned", "more": {"a": "b\0"}}]}
    status = build_agent(response).status("j", "s", 0)
    assert status["events"] == [{"t": 1, "event": "tuned", "more": {"a": "b\ufffd"}}]
    assert build_agent(FACTS).facts().facts == FACTS["facts"]
    assert build_agent({"facts": {"topology": TOPOLOGY}}).facts().facts == {"topology": TOPOLOGY}
