"""The answers that the agent gets itself before, during and after a load."""

import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.http.answers import AFTER, BEFORE, KEPT_BYTES, MAX_GROUPS, AnswerLog, Phase
from agents.hostagent.http.messages import Response
from agents.hostagent.step.plan import Expected
from tests.agents.checking import a_check
from tests.agents.support import (
    AgentHost,
    a_load,
    a_plan,
    a_ready,
    a_search,
    a_server,
    a_trial,
)
from tests.agents.support import (
    a_check as plan_check,
)

DURING = Phase("during", 0)
SERVERS = Path(__file__).parents[2] / "support" / "servers"
#: A load tool that keeps four connections open for 2.3 s.
TOOL = """
import json, socket, sqlite3, sys, time
if "--version" in sys.argv:
    sys.exit(0)
out, rows, port = sys.argv[1:4]
connections = [socket.create_connection(("127.0.0.1", int(port))) for _ in range(4)]
time.sleep(2.3)
with open(out, "w") as file:
    json.dump({}, file)
database = sqlite3.connect(rows)
database.execute("CREATE TABLE oha (url, start, start_latency_correction, end, duration, status,"
                 " len_bytes, run)")
database.execute("INSERT INTO oha VALUES ('u', 0.5, NULL, 0.75, 0.25, 200, 13, 1)")
database.commit()
"""


def reply(body: bytes, **changes: Any) -> Response:
    headers = {"content-type": "text/plain; charset=utf-8", **changes.pop("headers", {})}
    plain = {"protocol": "h1", "status": 200, "encoding": "identity", "closes": False}
    return Response(body=body, headers=headers, **{**plain, **changes})


def list_seen(log: AnswerLog) -> list[dict[str, Any]]:
    log.judge(lambda: None)
    seen: list[dict[str, Any]] = log.as_json(0)["seen"]
    return seen


def test_equal_answers_are_one_group_of_their_phase() -> None:
    log, check = AnswerLog(), a_check()
    for phase, bodies in ((BEFORE, b"aa"), (DURING, b"ab"), (AFTER, b"a")):
        for body in bodies:
            log.add(phase, check, reply(b"%c" % body))
    log.add(Phase("during", 1), check, reply(b"other load"))
    seen = list_seen(log)
    assert [(each["when"], each["count"], each["length"]) for each in seen] == [
        ("before", 2, 1), ("during", 1, 1), ("during", 1, 1), ("after", 1, 1)
    ]  # fmt: skip
    assert seen[0]["sha256"] == hashlib.sha256(b"a").hexdigest()
    assert (seen[0]["media_type"], seen[0]["problem"]) == ("text/plain", None)


def test_the_id_of_a_request_is_not_part_of_its_body() -> None:
    log, check = AnswerLog(), a_check()
    log.add(BEFORE, check, reply(b"for abc"), request_id="abc")
    log.add(BEFORE, check, reply(b"for def"), request_id="def")
    log.add(DURING, check, reply(b"for abc"), request_id="fed")
    before, during = list_seen(log)
    assert (before["count"], before["echoes"], during["echoes"]) == (2, True, False)
    assert before["sha256"] == hashlib.sha256(b"for ").hexdigest()


def test_volatile_parts_are_removed_from_decoded_bodies() -> None:
    log, check = AnswerLog(), a_check(volatile=(r"\d+", "id=[a-z]+"))
    log.add(BEFORE, check, reply(b"at 12:30 id=abc \xff"))
    log.add(DURING, check, reply(gzip.compress(b"at 1:4 id=xyz \xff"), encoding="gzip"))
    log.add(AFTER, check, reply(b"at 12:30 id=abc \xfe"))
    before, during, after = list_seen(log)
    assert before["sha256"] == during["sha256"] == hashlib.sha256(b"at :  \xff").hexdigest()
    assert (before["length"], after["sha256"] == before["sha256"]) == (7, False)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("(a+)+$", "the patterns of volatile did not end within"), ("(", "cannot be applied")],
)
def test_patterns_that_cannot_be_applied_are_a_problem(
    pattern: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.hostagent.http.volatile._LIMIT_S", 1.0)
    log, check = AnswerLog(), a_check(volatile=(pattern,))
    for body in (b"a" * 60 + b"!", b"b"):
        log.add(BEFORE, check, reply(body))
    assert len(list_seen(log)) == 2
    assert message in str(log.volatile_problem)


def test_answers_during_the_load_are_compared_with_the_expectations() -> None:
    log, check = AnswerLog(), a_check(name="1", response=Expected("matches", "^right"))
    log.add(BEFORE, check, reply(b"right"))
    log.add(DURING, check, reply(b"right"))
    assert log.find_problem(0) is None
    log.add(DURING, check, reply(b"wrong"))
    problems = [each["problem"] for each in list_seen(log)]
    assert problems == [None, None, "body 'wrong' without '^right'"]
    assert log.find_problem(0) == "body 'wrong' without '^right'"


def test_only_so_many_answers_and_bytes_are_kept() -> None:
    log, check = AnswerLog(), a_check(response=Expected("text", "x"))
    for number in range(MAX_GROUPS + 5):
        log.add(DURING, check, reply(b"%d" % number))
    log.add(AFTER, check, reply(bytes(KEPT_BYTES)))
    seen = list_seen(log)
    assert (len(seen), log.dropped) == (MAX_GROUPS + 1, 5)
    # A body that is not kept cannot be compared, and is not wrong.
    assert (seen[-1]["problem"], seen[-1]["length"]) == (None, KEPT_BYTES)
    assert all(each["problem"] for each in seen[:-1])


@pytest.mark.parametrize(
    ("headers", "cached"),
    [
        ({}, False), ({"age": "0"}, False), ({"age": "7"}, True), ({"x-cache": "MISS"}, False),
        ({"x-cache": "HIT from a"}, True), ({"cache-status": "a; hit"}, True),
    ],
)  # fmt: skip
def test_headers_of_caches_are_recognised(headers: dict[str, str], cached: bool) -> None:
    log = AnswerLog()
    log.add(DURING, a_check(), reply(b"", headers=headers))
    assert list_seen(log)[0]["cached"] is cached


def run_trial(
    host: AgentHost, lie: str, character: str = "liar", search: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return result.json of a trial of a server that tells this lie."""
    source = (SERVERS / "false_answers.py").read_text()
    host.send_source({"server.py": source, "character": character})
    path = host.send_tool(TOOL)
    checks = [
        plan_check(path="/", during_load=True),
        plan_check(name="1", path="/item", response={"text": "item 7"}, during_load=True),
        plan_check(name="2", path="/item", response={"text": "item 7"}),
    ]
    trial = a_trial(
        path,
        server=a_server(argv=["{python}", "server.py", "--port", "{port}", "--lie", lie]),
        ready=a_ready(path="/"),
        checks=checks,
        loads=[a_load(argv=["{tool}", "{out}", "{rows}", "{port}"])],
        search=search,
    )
    step = host.run_round(a_plan(trial))
    assert step.named("trial_done"), step.events
    return dict(step.file("t1", "result.json"))


def measure(host: AgentHost, lie: str, character: str = "liar") -> dict[str, Any]:
    """Return ANSWERS of the only load of `run_trial`."""
    (load,) = run_trial(host, lie, character)["loads"]
    return dict(load["answers"])


def select(answers: dict[str, Any], check: str, when: str = "during") -> list[dict[str, Any]]:
    return [each for each in answers["seen"] if (each["check"], each["when"]) == (check, when)]


def test_answers_are_sampled_while_the_load_runs(host: AgentHost) -> None:
    answers = measure(host, "replaces", "honest")
    assert {each["check"] for each in answers["seen"]} == {"load", "1"}
    assert [each["count"] for each in select(answers, "load", "before")] == [1, 2]
    (own,), (item,) = select(answers, "load"), select(answers, "1")
    assert answers["sent"] == own["count"] + item["count"] >= 2
    assert (answers["unanswered"], answers["dropped"], answers["volatile_problem"]) == (0, 0, None)
    assert (own["echoes"], own["closes"], own["problem"]) == (True, False, None)
    assert len({each["sha256"] for each in answers["seen"] if each["check"] == "load"}) == 1


def test_false_answers_under_load_are_seen(host: AgentHost) -> None:
    answers = measure(host, "replaces")
    own, item = select(answers, "load")[0], select(answers, "1")[0]
    assert own["sha256"] == hashlib.sha256(b"x" * 13).hexdigest()
    assert own["problem"] == "body 'xxxxxxxxxxxxx' instead of 'Hello, World!'"
    assert item["problem"] == "body 'xxxxxx' instead of 'item 7'"
    assert [each["problem"] for each in select(answers, "load", "after")] == [None]


def test_a_connection_that_ends_without_notice_is_seen(host: AgentHost) -> None:
    answers = measure(host, "closes")
    assert select(answers, "load")[0]["closes"] is True
    assert {each["closes"] for each in select(answers, "load", "before")} == {False}


def test_the_first_answer_may_be_that_of_the_readiness(host: AgentHost) -> None:
    answers = measure(host, "caches")
    assert answers["first_s"] > answers["later_s"] > 0


@pytest.mark.parametrize(("character", "passed"), [("liar", False), ("honest", True)])
def test_a_probe_with_wrong_answers_is_not_passed(
    host: AgentHost, character: str, passed: bool
) -> None:
    search = a_search(("latency.p99", "<", 10.0), low=1000.0, max_probes=1)
    (probe,) = run_trial(host, "forgets", character, search)["search"]["probes"]
    assert (probe["loads"], probe["passed"]) == ([0], passed)
    expected = "latency.p99" if passed else "wrong answer: body 'Hello, World!' instead of 'item 7'"
    assert probe["reason"].startswith(expected)
