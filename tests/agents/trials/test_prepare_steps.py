"""Prepare steps: commands that create data before the load, once per job, commit or trial."""

from pathlib import Path
from typing import Any

import pytest

from tests.agents.pair import SERVE, a_far_trial, needs_linux, two_hosts
from tests.agents.support import (
    SERVER,
    AgentHost,
    a_build,
    a_load,
    a_plan,
    a_search,
    a_server,
    a_step,
    a_trial,
)
from tests.agents.trials.test_services import NAMED, a_service

#: Adds a line to the file `order` of the tree, which no step and no trial removes.
LOG_LINE = "open('{tree}/order', 'a').write({what!r} + '\\n')"
TEXTS = {"h1": "Hello, ", "h2": "not for the definition"}
#: Answers with the content of two files.
READING = SERVER.replace(
    'b"Hello, World!"', 'b"".join(open(path, "rb").read() for path in sys.argv[2:])'
)
OTHER = "0ther"


def log_step(what: str, more: str = "pass", **changes: Any) -> dict[str, Any]:
    return a_step(f"{LOG_LINE.replace('{what!r}', repr(what))}; {more}", **changes)


def read_order(host: AgentHost, commit: str = "c0ffee") -> list[str]:
    return (host.root / f"builds/{commit}-r/tree/order").read_text().split()


def other_build() -> dict[str, Any]:
    source = {"archive": f"sources/{OTHER}.tar.gz"}
    return a_build(id=f"{OTHER}-r", commit=OTHER, tree=f"builds/{OTHER}-r", source=source)


def test_steps_run_once_per_job_commit_and_trial(host: AgentHost) -> None:
    for commit in ("c0ffee", OTHER):
        host.send_source({"server.py": READING.format(extra=""), "named.py": NAMED}, commit)
    step_of = {
        each: log_step(each, f"open('{{{each}_data}}/name', 'a').write('World!')", each=each)
        for each in ("job", "commit", "trial")
    }
    files = ["{files}/greeting/en.txt", "{job_data}/name"]
    trial = a_trial(
        host.send_tool(),
        server=a_server(argv=["{python}", "server.py", "{port}", *files]),
        prepare=list(step_of.values()),
        files={"files/greeting/en.txt": "h1", "load.lua": "h2"},
    )
    other = {"tree": f"builds/{OTHER}-r", "commit": OTHER}
    trials = [trial, {**trial, "id": "t2", **other}, {**trial, "id": "t3"}]
    plan = a_plan(*trials, texts=TEXTS, builds=[a_build(), other_build()])
    step = host.run_round(plan)

    assert len(step.named("trial_done")) == 3, step.events[-2]
    assert read_order(host) == ["job", "commit", "trial", "trial"]
    assert read_order(host, OTHER) == ["commit", "trial"]
    runs = {
        name: [each["runs"] for each in step.file(name, "result.json")["prepare"]]
        for name in ("t1", "t2", "t3")
    }
    assert runs == {"t1": [1, 1, 1], "t2": [0, 1, 1], "t3": [0, 0, 1]}
    of_job = [step.file(name, "result.json")["prepare"][0]["seconds"] for name in runs]
    assert len(set(of_job)) == 1
    assert of_job[0] > 0
    events = [(event["trial"], event["step"], event["each"]) for event in step.named("prepared")]
    assert [event for event in events if event[0] == "t2"] == [
        ("t2", 2, "commit"), ("t2", 3, "trial"),
    ]  # fmt: skip
    phases = [event["phase"] for event in step.named("phase") if event["trial"] == "t1"]
    assert phases[:4] == ["starting", *(f"preparing data: step {n} of 3" for n in (1, 2, 3))]
    assert not (host.root / "data/j1.trial").exists()

    # The next round of the job finds the data; another job does not.
    host.run_round({**plan, "step": "a1-r2", "trials": [{**trial, "id": "t4"}]})
    assert read_order(host) == ["job", "commit", "trial", "trial", "trial"]
    host.run_round({**plan, "job": "j2", "trials": [{**trial, "id": "t5"}]})
    assert read_order(host)[5:] == ["job", "commit", "trial"]
    assert {path.name for path in (host.root / "data").iterdir()} == {"j2", "j2.commit-c0ffee-r"}


def test_steps_run_after_the_build_the_services_and_the_server(host: AgentHost) -> None:
    host.send_source({"server.py": SERVER.format(extra=""), "named.py": NAMED})
    asking = "import urllib.request as r; r.urlopen('http://{bind}:{port}/hello').read()"
    steps = [
        log_step("server", asking, after="server"),
        log_step("services", "import socket; socket.create_connection(('{db_host}', {db_port}))"),
        log_step("build", "import os; assert os.environ['HOW'] == 'new'", after="build"),
    ]
    steps[2]["env"] = {"HOW": "new"}
    trial = a_trial(host.send_tool(), services=[a_service("db")], prepare=steps)
    step = host.run_round(a_plan(trial))
    assert step.named("trial_done"), step.events[-2]
    order = [word for word in read_order(host) if word in ("build", "start", "services", "server")]
    assert order == ["build", "start", "services", "server"]
    log = (step.folder / "trials/t1/prepare.log").read_text()
    assert log.count("$ ") == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("raise SystemExit('\\x1b[31mno such\\x00 table\\x1b[0m')", "ended with 1"),
        ("import time; time.sleep(60)", "took longer than 0.5 s"),
    ],
)
def test_a_failed_step_of_the_job_ends_all_its_trials_once(
    host: AgentHost, more: str, words: str
) -> None:
    failing = log_step("job", f"print('\\x1b[1mone\\x07', flush=True); {more}", each="job")
    failing["timeout_s"] = 0.5 if "sleep" in more else 20
    trial = a_trial(host.send_tool(), prepare=[failing])
    step = host.run_round(a_plan(trial, {**trial, "id": "t2"}))
    first, second = step.named("trial_failed")
    assert first["code"] == second["code"] == "prepare_failed"
    assert first["message"].startswith("prepare step 1 (")
    assert first["message"].endswith(words)
    assert first["output"].startswith("one\n")
    assert ("no such table" in first["output"]) == ("SystemExit" in more)
    assert all(char.isprintable() or char == "\n" for char in first["output"])
    assert (second["message"], second["output"]) == (first["message"], first["output"])
    assert read_order(host) == ["job"]


def test_a_step_that_was_interrupted_starts_again_without_its_data(host: AgentHost) -> None:
    done = log_step("first", "open('{job_data}/first', 'x')", each="job", after="build")
    code = (
        "import os, time; open('{job_data}/half', 'x'); "
        "os.path.exists('{tree}/again') or (open('{tree}/again', 'x'), time.sleep(60))"
    )
    plan = a_plan(a_trial(host.send_tool(), prepare=[done, log_step("second", code, each="job")]))
    step = host.start(plan)
    step.await_event("prepared")
    again = host.root / "builds/c0ffee-r/tree/again"
    while not again.exists():
        assert step.read_status()["alive"]
    host.verb("stop", step.job, step.name)
    step = host.run_round({**plan, "step": "a1-r1-i1"})
    assert step.named("trial_done"), step.events
    assert read_order(host) == ["first", "second", "first", "second"]


def test_each_probe_of_a_search_gets_new_data(host: AgentHost) -> None:
    steps = [log_step("job", each="job"), log_step("trial", "open('{trial_data}/new', 'x')")]
    search = a_search(("latency.p99", "<", 9.0), max_probes=3)
    load = a_load("{tool}", "{out}", "{rows}", "{probe_rate}")
    trial = a_trial(host.send_tool(), prepare=steps, loads=[load], search=search)
    step = host.run_round(a_plan(trial))
    assert step.named("trial_done"), step.events[-2]
    assert read_order(host) == ["job", "trial", "trial", "trial"]
    runs = [each["runs"] for each in step.file("t1", "result.json")["prepare"]]
    assert runs == [1, 3]


@needs_linux
def test_steps_run_on_the_host_of_the_server(tmp_path: Path) -> None:
    with two_hosts(tmp_path) as pair:
        asking = "import urllib.request as r; r.urlopen('http://{bind}:{port}/').read()"
        reading = "assert open('{files}/x').read() == 'Hello, '"
        steps = [log_step("job", reading, each="job"), log_step("server", asking, after="server")]
        failing = a_step("raise SystemExit('no data')")
        tool = pair.a.send_tool()
        good = a_far_trial(tool, prepare=steps, server=SERVE, files={"files/x": "h1"})
        bad = {**good, "id": "t2", "prepare": [steps[0], failing]}
        lead, _ = pair.run(good, bad, texts=TEXTS)
        assert lead.only("trial_done")["trial"] == "t1", lead.events
        failed = lead.only("trial_failed")
        assert (failed["code"], failed["output"]) == ("prepare_failed", "no data\n")
        assert read_order(pair.b) == ["job", "server"]
        assert "$ " in (lead.folder / "trials/t1/prepare.log").read_text()
        result = lead.file("t1", "result.json")
        assert [each["runs"] for each in result["prepare"]] == [1, 1]


def test_a_working_dir_that_the_commit_lacks_fails_the_step(host: AgentHost) -> None:
    trial = a_trial(host.send_tool(), prepare=[a_step("pass", working_dir="nowhere")])
    failed = host.run_round(a_plan(trial)).only("trial_failed")
    assert failed["code"] == "prepare_failed"
    assert "the commit has no folder nowhere" in failed["message"]


@pytest.mark.parametrize(
    "path", ["../../../x", "/tmp/x", "files/../../x", "files//x", "result.json"]
)
def test_a_file_outside_of_the_folder_of_the_trial_is_refused(host: AgentHost, path: str) -> None:
    step = host.send_plan(a_plan(a_trial("tools/none", files={path: "h1"}), texts=TEXTS))
    assert "error" in host.verb("start", step.job, step.name)
    missing = a_plan(a_trial("tools/none", files={"files/a": "h3"}), texts=TEXTS, step="a1-r2")
    step = host.send_plan(missing)
    assert "a hash of plan.texts" in host.verb("start", step.job, step.name)["error"]["message"]
