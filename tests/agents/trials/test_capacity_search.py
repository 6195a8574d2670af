"""The search for a server's capacity: every probe starts all processes again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.protocol import load_files
from tests.agents.pair import Pair, a_far_trial, needs_linux, two_hosts
from tests.agents.support import (
    FAKE_TOOL,
    SERVER,
    AgentHost,
    Step,
    a_check,
    a_load,
    a_plan,
    a_search,
    a_tool,
    a_trial,
)

#: Two at a time, each 10 ms: no more than 200 a second, whatever the machine.
SLOW = """
import http.server, sys, threading, time
workers = threading.Semaphore(2)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        with workers:
            time.sleep(0.01)
        self.send_response(200)
        self.send_header("Content-Length", "13")
        self.end_headers()
        self.wfile.write(b"Hello, World!")
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
#: As FAKE_TOOL, but all is answered at once up to 1000/s, and late beyond: `tool OUT ROWS RATE`.
FAKE = FAKE_TOOL.replace("out, rows = sys.argv[1:3]", "out, rows, rate = sys.argv[1:4]").replace(
    '0.25, 200, 13, 1)"', '?, 200, 13, 1)", [0.001 if float(rate) <= 1000 else 0.5]'
)
LOAD = a_load("{tool}", "{out}", "{rows}", "{probe_rate}")
FAST = ("latency.p99", "<", 0.1)


def a_searching_trial(tool: str, **changes: Any) -> dict[str, Any]:
    return a_trial(tool, **{"loads": [LOAD], "search": a_search(FAST), **changes})


def read_search(step: Step) -> dict[str, Any]:
    assert step.named("trial_done"), (step.events[-2]["message"], step.events[-2]["output"])
    result: dict[str, Any] = step.file("t1", "result.json")
    return result


def test_capacity_search_finds_where_the_objective_fails(host: AgentHost) -> None:
    telling = "open('starts', 'a').write('x')"
    host.send_source({"server.py": SERVER.format(extra=telling)})
    trial = a_searching_trial(host.send_tool(FAKE), search=a_search(FAST, max_probes=32))
    step = host.run_round(a_plan(trial))
    result = read_search(step)
    search, loads = result["search"], result["loads"]
    assert search["stopped"] == "converged"
    assert 950 <= search["capacity"] <= 1050
    probes = search["probes"]
    assert probes[0]["rate"] == 50
    assert all(probe["passed"] == (probe["rate"] <= 1000) for probe in probes)
    assert all("latency.p99" in probe["reason"] for probe in probes)
    assert [probe["loads"] for probe in probes] == [[number] for number in range(len(loads))]
    assert [load["rate"] for load in loads] == [probe["rate"] for probe in probes]
    for number, load in enumerate(loads):
        assert float(load["argv"][3]) == load["rate"]
        report, rows = load_files(number)
        assert step.file("t1", report) == {"fake": True}
        assert step.file("t1", rows)["all"]["n"] == 1
    starts = (host.root / "builds/c0ffee-r/tree/starts").read_text()
    assert len(starts) == len(probes)
    assert {check["when"] for check in result["checks"]} == {"before", "after"}
    phases = [event["phase"] for event in step.named("phase")]
    assert "probing 50/s" in phases
    assert phases[-1] == "reading the results"


def test_capacity_search_warms_up_in_each_probe(host: AgentHost) -> None:
    warming = a_load(
        "{python}", "-c", "print(open('warmed', 'a').write('x'))", "{probe_rate}", kind="warmup"
    )
    trial = a_searching_trial(
        host.send_tool(FAKE), loads=[warming, LOAD], search=a_search(FAST, max_probes=3)
    )
    step = host.run_round(a_plan(trial))
    assert read_search(step)["search"]["stopped"] == "budget"
    assert (step.folder / "trials/t1/warmed").read_text() == "xxx"


def test_capacity_search_repeats_a_load_until_its_percentile_is_known(host: AgentHost) -> None:
    """FAKE reports 1 request for each load, and the objective needs 100: 4 times 25 at 50/s."""
    search = a_search(FAST, requests=100, low=60.0, max_probes=9)
    step = host.run_round(a_plan(a_searching_trial(host.send_tool(FAKE), search=search)))
    result = read_search(step)
    probes = result["search"]["probes"]
    assert [probe["rate"] for probe in probes[:3]] == [60, 120, 240]
    assert [probe["loads"] for probe in probes[:3]] == [[0, 1, 2, 3], [4, 5], [6]]
    assert [load["rate"] for load in result["loads"][:7]] == [60] * 4 + [120] * 2 + [240]
    # Each pass counts for the limit of probes.
    assert sum(len(probe["loads"]) for probe in probes) == len(result["loads"]) == 9


def test_capacity_search_goes_no_lower_than_its_percentile_is_known(host: AgentHost) -> None:
    search = a_search(("latency.p99", "<", 0.0001), requests=100, low=60.0, max_probes=16)
    step = host.run_round(a_plan(a_searching_trial(host.send_tool(FAKE), search=search)))
    found = read_search(step)["search"]
    assert {probe["rate"] for probe in found["probes"]} == {60, 50}
    assert (found["capacity"], found["stopped"]) == (None, "below the start")
    assert found["high"] == 50


def test_capacity_search_counts_a_server_that_ended_as_overload(host: AgentHost) -> None:
    killing = FAKE + (
        "if float(rate) > 1000:\n"
        "    import os, time\n"
        "    os.kill(int(open(sys.argv[4]).read()), 9)\n"
        "    time.sleep(0.2)\n"
    )
    telling = "open('pid', 'w').write(str(os.getpid()))"
    host.send_source({"server.py": SERVER.format(extra=telling)})
    load = a_load("{tool}", "{out}", "{rows}", "{probe_rate}", "{tree}/pid")
    result = read_search(
        host.run_round(a_plan(a_searching_trial(host.send_tool(killing), loads=[load])))
    )
    probes = result["search"]["probes"]
    died = [probe for probe in probes if not probe["passed"]]
    assert died
    assert all(probe["loads"] == [] and "-9" in probe["reason"] for probe in died)
    lived = [number for probe in probes if probe["passed"] for number in probe["loads"]]
    assert lived == list(range(len(result["loads"])))
    assert 900 <= result["search"]["capacity"] <= 1100


def test_capacity_search_fails_if_no_probe_ends(host: AgentHost) -> None:
    killing = FAKE + "import os; os.kill(int(open(sys.argv[4]).read()), 9)\n"
    telling = "open('pid', 'w').write(str(os.getpid()))"
    host.send_source({"server.py": SERVER.format(extra=telling)})
    load = a_load("{tool}", "{out}", "{rows}", "{probe_rate}", "{tree}/pid")
    step = host.run_round(a_plan(a_searching_trial(host.send_tool(killing), loads=[load])))
    assert step.only("trial_failed")["code"] == "server_died"
    assert "-9" in step.only("trial_failed")["message"]


def test_capacity_search_counts_a_wrong_response_after_a_load_as_overload(host: AgentHost) -> None:
    spoiling = FAKE + "if float(rate) > 1000: open(sys.argv[4], 'w').close()\n"
    turning = SERVER.replace(
        'b"Hello, World!"', 'b"Oops" if os.path.exists("spoilt") else b"Hello, World!"'
    )
    extra = "if os.path.exists('spoilt'): os.unlink('spoilt')"
    host.send_source({"server.py": turning.format(extra=extra)})
    load = a_load("{tool}", "{out}", "{rows}", "{probe_rate}", "{tree}/spoilt")
    result = read_search(
        host.run_round(a_plan(a_searching_trial(host.send_tool(spoiling), loads=[load])))
    )
    missed = [probe for probe in result["search"]["probes"] if not probe["passed"]]
    assert missed
    assert all("'Oops'" in probe["reason"] for probe in missed)


def test_capacity_search_counts_a_tool_that_hangs_as_overload(host: AgentHost) -> None:
    hanging = FAKE + "import time\nif float(rate) > 100: time.sleep(300)\n"
    load = {**LOAD, "wall_limit_s": 5.0}
    search = a_search(FAST, max_probes=3)
    trial = a_searching_trial(host.send_tool(hanging), loads=[load], search=search)
    result = read_search(host.run_round(a_plan(trial)))
    assert [probe["passed"] for probe in result["search"]["probes"]] == [True, True, False]
    assert result["search"]["probes"][2]["loads"] == []
    assert "did not end" in result["search"]["probes"][2]["reason"]
    assert len(result["loads"]) == 2


def test_capacity_search_fails_where_the_tool_fails(host: AgentHost) -> None:
    failing = FAKE + "if float(rate) > 300: sys.exit('no more ports')"
    step = host.run_round(a_plan(a_searching_trial(host.send_tool(failing))))
    failed = step.only("trial_failed")
    assert failed["code"] == "tool_failed"
    assert "no more ports" in failed["output"]
    assert not (step.folder / "trials/t1/result.json").exists()


def test_capacity_search_fails_where_the_answer_is_wrong_before_any_load(host: AgentHost) -> None:
    wrong = a_check(response={"text": "Good day"})
    step = host.run_round(a_plan(a_searching_trial(host.send_tool(FAKE), checks=[wrong])))
    assert step.only("trial_failed")["code"] == "wrong_answer"


def test_capacity_search_finds_the_capacity_of_a_slow_server(host: AgentHost, oha: str) -> None:
    host.send_source({"server.py": SLOW})
    load = a_load(
        *("{tool}", "--no-tui", "--output-format", "json", "-o", "{out}", "--db-url", "{rows}"),
        *("-z", "1s", "-c", "20", "-w", "-q", "{probe_rate}", "--latency-correction", "-t", "5s"),
        "http://{address}:{port}/hello",
    )
    search = a_search(
        FAST, ("success", ">=", 0.99), low=20.0, high=2000.0, duration_s=1.0, max_probes=9
    )
    tool = a_tool(oha, name="oha")
    result = read_search(
        host.run_round(a_plan(a_trial("", loads=[load], search=search, tool=tool)))
    )
    probes = result["search"]["probes"]
    too_fast = [probe for probe in probes if probe["rate"] >= 400]
    assert not any(probe["passed"] for probe in too_fast), probes
    assert result["search"]["high"] is None or result["search"]["high"] < 500
    assert [load["rate"] for load in result["loads"]] == [probe["rate"] for probe in probes]
    assert all(load["samples"] for load in result["loads"])


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with two_hosts(tmp_path) as pair:
        yield pair


@needs_linux
def test_capacity_search_searches_on_two_hosts(pair: Pair) -> None:
    trial = a_far_trial(
        pair.a.send_tool(FAKE), loads=[LOAD], search=a_search(FAST, max_probes=6), checks=[]
    )
    lead, follower = pair.run(trial)
    result = read_search(lead)
    assert len(result["loads"]) == 6
    assert result["on"] == {"server": "b", "tool": "a"}
    assert all(set(load["interference"]) == {"a", "b"} for load in result["loads"])
    assert follower.events[-1]["event"] == "round_done"
