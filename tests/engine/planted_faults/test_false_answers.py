"""Answers that are correct before and after a load and false during it, with each load tool."""

import hashlib
import sys

import pytest

from orchestrator.loadtools.sampled_answers import describe_first_answer
from orchestrator.runs.models import Run, Trial
from tests.support.planted_faults import Laboratory, codes, reason
from tests.support.programs import tool

pytestmark = [pytest.mark.engine, pytest.mark.quiet, pytest.mark.django_db, pytest.mark.slow]

TOOLS = ("oha", "wrk", "h2load", "k6")
SOURCE = """
version: 1
title: False answers
subject:
  start: [%s, false_answers.py, --port, "{port}", --lie, "{lie}"]
  ready: {body: "Hello, World!"}
load: {tool: "{client}", connections: 4, duration_s: 3, warmup_s: 0%s}
matrix: {client: [%s], lie: [%s]}
checks: [%s]
rounds: 1
cooldown_s: 0
"""
#: What is false, and the reason with its text.
FALSE_ANSWERS = (
    ("replaces", "answers_changed", "another body of the same length (13 bytes)"),
    ("shortens", "answers_changed", "another body (3 instead of 13 bytes)"),
    ("closes", "connections_closed", "sampled answers, and not before the load"),
    ("mixes", "answer_mixed", "sampled answers lacked the x-request-id of their request"),
    ("forgets", "wrong_under_load", "check 1 during the load: body 'Hello, World!'"),
)
CASES = [
    (client, *each)
    for each in FALSE_ANSWERS
    for client in TOOLS
    if (client, each[0]) != ("h2load", "closes")
]
ITEM = "{path: /item, text: item 7}"
GRPC = ", protocol: grpc, grpc: {call: helloworld.Greeter/SayHello, proto: hello.proto}"
#: Field 1 of the message is the text Hello.
ANSWER = hashlib.sha256(b"\x0a\x05Hello").hexdigest()
CALL = f'{{path: /helloworld.Greeter/SayHello, message_base64: "", sha256: {ANSWER}}}'


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"PITWALL_K6": str(tool("k6")), "PITWALL_GHZ": str(tool("ghz"))}


def build_source(clients: str, lies: str, *, load: str = "", checks: str = ITEM) -> str:
    return SOURCE % (sys.executable, load, clients, lies, checks)


@pytest.fixture(scope="module")
def run(lab: Laboratory) -> Run:
    source = build_source(", ".join(TOOLS), "replaces, shortens, closes, mixes, forgets")
    return lab.measure("false-answers", source, timeout_s=500)


@pytest.fixture(scope="module")
def declared(lab: Laboratory) -> Run:
    """The definition says that nothing varies except the name of the world."""
    load = ", expect: {volatile: ['World$']}"
    source = build_source("wrk", "replaces, caches", load=load, checks="")
    return lab.measure("declared", source)


@pytest.fixture(scope="module")
def calls(lab: Laboratory) -> Run:
    return lab.measure("calls", build_source("ghz, k6", "replaces", load=GRPC, checks=CALL))


@pytest.mark.parametrize(("client", "lie", "code", "text"), CASES)
def test_false_answers_under_load_are_detected(
    lab: Laboratory, run: Run, client: str, lie: str, code: str, text: str
) -> None:
    liar, honest = lab.pair(run, client=client, lie=lie)
    assert text in reason(liar, code)
    assert [check["problem"] for check in liar.provenance["checks"]] == [None] * 4
    false = {"answers_changed", "connections_closed", "answer_mixed", "wrong_under_load"}
    assert not false & codes(honest)
    assert honest.provenance["answers"]["sent"] >= 2


def test_h2load_ends_with_its_connections(lab: Laboratory, run: Run) -> None:
    """It does not replace them, so the load may end too early for a result."""
    trial = Trial.objects.get(
        job__run=run,
        variant__commit__sha=lab.shas["liar"],
        case__parameters__contains={"client": "h2load", "lie": "closes"},
    )
    if trial.state == "failed":
        assert "so it did not end by itself" in trial.message
    else:
        assert {"connections_closed", "transport_errors"} & codes(trial)


def test_another_body_than_defined_makes_the_trial_invalid(lab: Laboratory, declared: Run) -> None:
    liar, honest = lab.pair(declared, lie="replaces")
    text = reason(liar, "body_changed")
    assert "another body than the first one, during the load of the same length" in text
    assert "body_changed" not in codes(honest)
    lab.check_left_out(declared, lie="replaces")


def test_answers_from_a_cache_are_noted(lab: Laboratory, declared: Run) -> None:
    """A cache may be the subject of a benchmark, so this is no reason against the trial."""
    liar, _ = lab.pair(declared, lie="caches")
    (note,) = describe_first_answer(liar.provenance["answers"])
    assert note.startswith("The first answer took 3")
    assert "Either the server cached the answer, or it did initial work" in note
    assert "body_changed" not in codes(liar)


@pytest.mark.parametrize("client", ["ghz", "k6"])
def test_a_false_message_of_a_checked_call_is_detected(
    lab: Laboratory, calls: Run, client: str
) -> None:
    liar, honest = lab.pair(calls, client=client)
    assert "check 1 during the load: a body with SHA-256" in reason(liar, "wrong_under_load")
    assert "wrong_under_load" not in codes(honest)
    assert honest.provenance["answers"]["sent"] >= 1
