"""A round with the real load tool, from `start` to its files."""

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agents.hostagent.trials.poll_pause import compute_wait_for_poll_s
from tests.agents.support import (
    FAKE_TOOL,
    HELLO,
    SERVER,
    AgentHost,
    a_build,
    a_load,
    a_plan,
    a_server,
    a_tool,
    a_trial,
    is_running,
)
from tests.support.waiting import wait_until

SERVE_HELLO = a_server(argv=["{python}", "server.py", "--port", "{port}"])
OHA_ARGV = (
    *("{tool}", "--no-tui", "--output-format", "json", "-o", "{out}", "--db-url", "{rows}"),
    *("--worker-threads", "1", "-t", "5s", "-c", "4", "-w"),
)
URL = "http://127.0.0.1:{port}/hello"


def oha_trial(oha: str, *words: str, **changes: Any) -> dict[str, Any]:
    load = a_load(*OHA_ARGV, *words, URL, warmup_s=changes.pop("warmup_s", 0.0))
    tool = a_tool(oha, name="oha")
    return a_trial("", **{"tool": tool, "server": SERVE_HELLO, "loads": [load], **changes})


def test_round_measures_two_trials_and_keeps_their_files(host: AgentHost, oha: str) -> None:
    host.send_source({"server.py": HELLO.read_text()})
    trials = [oha_trial(oha, "-z", "1200ms", id=name, warmup_s=0.2) for name in ("t1", "t2")]
    before = time.time()
    step = host.run_round(a_plan(*trials))
    assert [e["trial"] for e in step.named("trial_done")] == ["t1", "t2"], step.events
    assert step.events[0]["event"] == "supervisor_started"
    assert step.events[-1]["event"] == "round_done"
    assert step.only("build_done")["cached"] is False
    phases = [e["phase"] for e in step.named("phase") if e["trial"] == "t1"]
    assert phases == ["starting", "measuring", "stopping", "reading the results"]
    for name in ("t1", "t2"):
        _check_result(step.file(name, "result.json"), before)
        _check_rows(step.file(name, "rows.json"), step.file(name, "tool.json"))
    assert not is_running(step.pid)


def _check_result(result: dict[str, Any], before: float) -> None:
    assert result["tool"]["version"].count(".") == 2
    assert len(result["tool"]["sha256"]) == 64
    (load,) = result["loads"]
    assert load["rc"] == 0
    assert load["hung"] is False
    assert load["rate"] is None
    assert f"http://127.0.0.1:{result['port']}/hello" in load["argv"]
    times = [before, result["started_at"], load["load_started_at"], load["load_ended_at"]]
    assert times == sorted(times)
    assert set(load["interference"]) == set(result["hosts"]) == {"a"}
    checks = result["checks"]
    assert [(check["name"], check["when"]) for check in checks] == [
        ("load", "before"),
        ("load", "after"),
    ]
    assert {check["protocol"] for check in checks} == {"h1"}
    usage = load["usage"]
    assert usage["tool_cpu_s"] > 0
    if os.path.exists("/proc/self/stat"):
        assert usage["server_cpu_s"] > 0
        assert usage["server_peak_rss_bytes"] > 1_000_000
        assert load["samples"]
    assert all(
        (usage[key] is None) == (key in usage["reasons"]) for key in usage if key != "reasons"
    )


def _check_rows(rows: dict[str, Any], report: dict[str, Any]) -> None:
    assert rows["all"]["percentiles"] == report["latencyPercentiles"]  # bit for bit
    assert rows["all"]["n"] == sum(report["statusCodeDistribution"].values())
    counted = sum(rows["ok"]["count"])
    assert 0 < counted < rows["all"]["n"]
    assert rows["by_status"] == {"200": counted}
    assert rows["bytes"] == 13 * counted
    assert sum(item["answered"] for item in rows["slices"]) == counted
    assert rows["window"]["start_s"] == 0.2
    assert rows["window"]["end_s"] > 1.0


def test_round_keeps_the_corrected_latency_of_an_open_loop(host: AgentHost, oha: str) -> None:
    host.send_source({"server.py": HELLO.read_text()})
    words = ("-z", "1s", "-q", "300", "--latency-correction")
    step = host.run_round(a_plan(oha_trial(oha, *words)))
    rows, report = step.file("t1", "rows.json"), step.file("t1", "tool.json")
    assert rows["all"]["percentiles"] == report["latencyPercentiles"]


def test_round_interrupts_a_hanging_oha_and_keeps_its_results(host: AgentHost, oha: str) -> None:
    host.send_source({"server.py": HELLO.read_text()})
    load = a_load(*OHA_ARGV, "-z", "60s", URL, wall_limit_s=1.0)
    step = host.run_round(a_plan(oha_trial(oha, loads=[load])))
    assert step.only("trial_done")
    assert step.file("t1", "result.json")["loads"][0]["hung"] is True
    assert step.file("t1", "rows.json")["all"]["n"] > 0


def test_round_drops_the_output_of_a_warm_up(host: AgentHost) -> None:
    counting = (
        "import json, os, sqlite3, sys\n"
        "if '--version' in sys.argv: sys.exit(0)\n"
        "out, rows, n = sys.argv[1:]\n"
        "assert not os.path.exists(out) and not os.path.exists(rows)\n"
        "json.dump({'n': n}, open(out, 'w'))\n"
        "database = sqlite3.connect(rows)\n"
        "database.execute('CREATE TABLE oha (start, end, duration, status, len_bytes, "
        "start_latency_correction)')\n"
        "database.execute('INSERT INTO oha VALUES (0.1, 0.2, 0.1, 200, 13, NULL)')\n"
        "database.commit()\n"
    )
    loads = [
        a_load("{tool}", "{out}", "{rows}", "1", kind="warmup"),
        a_load("{tool}", "{out}", "{rows}", "2"),
    ]
    step = host.run_round(a_plan(a_trial(host.send_tool(counting), loads=loads)))
    assert step.file("t1", "tool.json") == {"n": "2"}
    phases = [e["phase"] for e in step.named("phase") if e["trial"] == "t1"]
    assert phases[1:3] == ["warming up", "measuring"]


def test_placeholders_are_replaced_and_other_braces_kept(host: AgentHost) -> None:
    load = a_load("{tool}", "{out}", "{rows}", "{port}", "[1-9]{1,4}", "{trial_dir}", "{tree}")
    step = host.run_round(a_plan(a_trial(host.send_tool(), loads=[load])))
    result = step.file("t1", "result.json")
    assert result["loads"][0]["argv"][3:] == [
        str(result["port"]),
        "[1-9]{1,4}",
        str(step.folder / "trials/t1"),
        str(host.root / "builds/c0ffee-r/tree"),
    ]


def test_the_server_gets_only_the_environment_of_the_plan(
    host: AgentHost, monkeypatch: Any
) -> None:
    monkeypatch.setenv("PITWALL_SECRET_OF_THE_CALLER", "1")
    extra = "import json; print(json.dumps(dict(os.environ)), flush=True)"
    from_plan = a_server(env={"GREETING": "hi"})
    host.send_source({"server.py": SERVER.format(extra=extra)})
    tool = host.send_tool(
        FAKE_TOOL + "open(f'{out}.env', 'w').write(str(__import__('os').environ))"
    )
    keep = ["{python}", "-c", "import os; open('proxy', 'w').write(os.environ['PROXY'])"]
    of_host = {"GREETING": "from the host", "PROXY": "proxy:3128"}
    trial = a_trial(tool, server=from_plan)
    step = host.run_round(a_plan(trial, env=of_host, builds=[a_build(steps=[keep])]))
    seen = json.loads((step.folder / "trials/t1/server.log").read_text())
    assert (seen["GREETING"], seen["PROXY"]) == ("hi", "proxy:3128")
    assert (host.root / "builds/c0ffee-r/tree/proxy").read_text() == "proxy:3128"
    (of_tool,) = step.folder.glob("trials/t1/*.env")
    assert "PROXY" not in of_tool.read_text(), "it would change the load"
    assert "PITWALL_SECRET_OF_THE_CALLER" not in seen


def test_a_step_starts_only_once(host: AgentHost) -> None:
    slow = a_trial(host.send_tool(), cooldown_s=1.0)
    step = host.start(a_plan(slow))
    assert host.verb("start", step.job, step.name) == {"pid": step.pid, "already": True}
    step.await_end()
    assert host.verb("start", step.job, step.name) == {"pid": step.pid, "already": True}
    step.read_status()
    assert len(step.named("supervisor_started")) == 1
    assert len(step.named("trial_done")) == 1


def test_two_concurrent_starts_report_the_same_supervisor(host: AgentHost) -> None:
    step = host.send_plan(a_plan(a_trial(host.send_tool(), cooldown_s=1.0)))
    with ThreadPoolExecutor() as pool:
        starts = [pool.submit(host.verb, "start", step.job, step.name) for _ in range(2)]
        answers = [start.result() for start in starts]
    step.await_end()
    pid = step.only("supervisor_started")["pid"]
    assert [answer["pid"] for answer in answers] == [pid, pid]
    assert sum(answer.get("already", False) for answer in answers) == 1


def test_only_one_step_works_at_a_time(host: AgentHost) -> None:
    step = host.start(a_plan(a_trial(host.send_tool(), cooldown_s=30.0)))
    step.await_event("trial_started")
    other = host.send_plan(a_plan(job="j2", builds=[]))
    error = host.verb("start", other.job, other.name)["error"]
    assert error["code"] == "busy"
    assert "j1/a1-r1" in error["message"]
    assert other.read_status()["started"] is False
    host.verb("stop", step.job, step.name)
    assert host.verb("start", other.job, other.name)["pid"] > 0
    other.await_end()
    assert other.only("round_done")


def test_an_empty_round_ends_immediately(host: AgentHost) -> None:
    step = host.run_round(a_plan(builds=[]))
    assert [event["event"] for event in step.events] == ["supervisor_started", "round_done"]


def test_the_supervisor_inherits_no_open_files(host: AgentHost) -> None:
    """A reader of the output of `start` gets its end while the supervisor continues."""
    step = host.start(a_plan(a_trial(host.send_tool(), cooldown_s=30.0)))
    # From here on it only waits; before, it has asked the load tool for its version over a pipe.
    wait_until(lambda: list(step.folder.glob("trials/*/result.json")), "no end")
    assert os.getsid(step.pid) == step.pid
    if os.path.exists("/proc/self/fd"):
        files = {os.readlink(path) for path in Path(f"/proc/{step.pid}/fd").iterdir()}
        pipes = [name for name in files if name.startswith("pipe:")]
        # The lock against sleep ends with its pipe.
        assert len(pipes) == (shutil.which("systemd-inhibit") is not None)
        assert str(step.folder / "supervisor.log") in files


def test_a_trial_with_a_result_is_not_repeated(host: AgentHost) -> None:
    step = host.run_round(a_plan(a_trial(host.send_tool())))
    first = step.file("t1", "result.json")
    host.run("supervise", step.job, step.name)
    step.read_status()
    assert len(step.named("trial_started")) == 1
    assert len(step.named("round_done")) == 2
    assert step.file("t1", "result.json") == first


def test_a_finished_build_is_not_repeated(host: AgentHost) -> None:
    host.run_round(a_plan(a_trial(host.send_tool())))
    (host.root / "sources/c0ffee.tar.gz").unlink()
    step = host.run_round(a_plan(a_trial("tools/fake"), step="a1-r2"))
    assert step.only("build_done")["cached"] is True
    assert step.only("trial_done")


def test_the_first_trial_waits_for_a_poll_after_a_build(host: AgentHost, oha: str) -> None:
    host.send_source({"server.py": HELLO.read_text()})
    step = host.run_round(a_plan(oha_trial(oha, "-z", "300ms", id="t1", expected_s=4.0)))
    (announced,) = [event for event in step.named("phase") if event["trial"] is None]
    assert announced["phase"] == "starting the first trial"
    wait_s = compute_wait_for_poll_s(step.only("build_done")["seconds"])
    assert step.only("trial_started")["t"] - announced["t"] >= wait_s
    assert announced["quiet_s"] > wait_s + 4.0, "the next poll comes after the load"

    # A cached build needs no wait: the first poll of the round is soon enough.
    later = host.run_round(a_plan(oha_trial(oha, "-z", "300ms", id="t2"), step="a1-r2"))
    assert later.only("build_done")["cached"]
    assert all(event["trial"] == "t2" for event in later.named("phase"))
