"""A round of two hosts: the one that leads puts the load on, the other one has the server."""

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.errors import AgentError
from agents.hostagent.hosts.follower_connection import FollowerConnection, connect
from agents.hostagent.hosts.secure_channel import build_scope
from agents.hostagent.step.plan import Host
from tests.agents.pair import (
    ADDRESSES,
    ASK,
    BOUND,
    SECRET,
    Pair,
    a_far_trial,
    needs_linux,
    two_hosts,
)
from tests.agents.support import (
    FAKE_TOOL,
    HELLO,
    a_build,
    a_load,
    a_server,
    a_tool,
    a_trial,
    is_running,
    limits,
    pids_in,
)
from tests.support.waiting import wait_until

pytestmark = needs_linux
BUSY = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(300)"
TELLS_PID = "open('pid', 'w').write(str(os.getpid()))"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with two_hosts(tmp_path) as pair:
        yield pair


def test_load_reaches_a_server_on_another_host(pair: Pair) -> None:
    tool = pair.a.send_tool(FAKE_TOOL.replace("out, rows", ASK + "out, rows"))
    load = a_load("{tool}", "{out}", "{rows}", "http://{address}:{port}/hello")
    trials = [a_far_trial(tool, loads=[load], id=name) for name in ("t1", "t2")]
    lead, follower = pair.run(*trials)
    assert [e["trial"] for e in lead.named("trial_done")] == ["t1", "t2"], lead.events
    assert lead.events[-1]["event"] == follower.events[-1]["event"] == "round_done"
    result = lead.file("t1", "result.json")
    assert result["build"]["checked"] is True
    assert result["on"] == {"server": "b", "tool": "a"}
    (load,) = result["loads"]
    assert load["argv"][3] == f"http://127.0.0.2:{result['port']}/hello"
    assert result["server_argv"][2:] == ["127.0.0.2", str(result["port"])]
    assert 0 <= load["peer_gap_s"] < 30
    assert set(result["hosts"]) == set(load["interference"]) == {"a", "b"}
    assert set(lead.file("t2", "result.json")["hosts"]) == {"a", "b"}
    assert set(result["placement"]) == {"a", "b"}
    assert result["placement"]["b"]["agent"] == sorted(os.sched_getaffinity(0))
    assert not list((pair.b.root / "jobs").glob("*/*/trials/*/result.json"))
    assert not lead.named("build_started")


def test_no_host_keeps_a_secret_that_a_process_of_another_one_got(pair: Pair) -> None:
    value = "t0ken-of-the-application"
    pair.secrets = {"APP_TOKEN": value}
    pair.b.send_source({"server.py": BOUND.format(extra="print(os.environ['TOKEN'], flush=True)")})
    serve = a_server(
        on="b",
        argv=["{python}", "server.py", "{bind}", "{port}"],
        env={"TOKEN": {"secret": "APP_TOKEN"}},
    )
    # The lead's tool has the value from elsewhere, such as from an answer of the server.
    tool = pair.a.send_tool(
        f"import sys\nprint('{value[:9]}' + '{value[9:]}', file=sys.stderr)\n{FAKE_TOOL}"
    )
    lead, _ = pair.run(a_far_trial(tool, server=serve))
    assert lead.named("trial_done"), lead.events
    trial = lead.folder / "trials/t1"
    assert (trial / "server.log").read_text() == "***\n"
    assert (trial / "tool.stderr").read_text() == "***\n"
    for host in (pair.a, pair.b):
        files = [path for path in host.root.rglob("*") if path.is_file()]
        assert not [path for path in files if value.encode() in path.read_bytes()]


def test_usage_of_the_server_is_measured_on_its_host(pair: Pair, oha: str) -> None:
    pair.b.send_source({"server.py": HELLO.read_text()})
    serve = a_server(
        on="b",
        argv=["{python}", "server.py", "--bind", "{bind}", "--port", "{port}"],
        limits=limits(open_files=512),
    )
    load = a_load(
        *("{tool}", "--no-tui", "--output-format", "json", "-o", "{out}", "--db-url", "{rows}"),
        *("-z", "2500ms", "-c", "2", "-w", "http://{address}:{port}/hello"),
    )
    tool = a_tool(oha, name="oha", limits=limits(open_files=600))
    lead, _ = pair.run(a_trial("", server=serve, loads=[load], tool=tool))
    assert lead.named("trial_done"), lead.events
    result = lead.file("t1", "result.json")
    (load,) = result["loads"]
    assert load["usage"]["server_cpu_s"] > 0
    assert load["usage"]["tool_cpu_s"] > 0
    assert load["usage"]["tool_peak_rss_bytes"] > 0
    assert not {"tool_cpu_s", "tool_peak_rss_bytes"} & set(load["usage"]["reasons"])
    assert len(load["samples"]) >= 2
    last = load["samples"][-1]
    assert last["server_cpu_s"] > 0
    assert last["tool_cpu_s"] > 0
    assert result["limits"]["server"]["open_files"] == 512
    assert result["limits"]["tool"]["open_files"] == 600


def test_the_log_of_the_server_is_fetched(pair: Pair) -> None:
    pair.b.send_source({"server.py": BOUND.format(extra="print('far away', flush=True)")})
    lead, _ = pair.run(a_far_trial(pair.a.send_tool()))
    assert lead.named("trial_done"), lead.events
    assert "far away" in (lead.folder / "trials/t1/server.log").read_text()


def test_the_output_of_a_remote_server_that_does_not_start_is_shown(pair: Pair) -> None:
    broken = a_server(on="b", argv=["{python}", "-c", "import sys; sys.exit('no config.toml')"])
    tool = pair.a.send_tool()
    lead, follower = pair.run(a_far_trial(tool, server=broken), a_far_trial(tool, id="t2"))
    failed = lead.only("trial_failed")
    assert failed["code"] == "server_did_not_start"
    assert "no config.toml" in failed["output"]
    assert lead.only("trial_done")["trial"] == "t2"
    assert follower.events[-1]["event"] == "round_done"


def test_a_missing_program_of_a_remote_server_is_reported(pair: Pair) -> None:
    missing = a_server(on="b", argv=["no-such-program"])
    lead, _ = pair.run(a_far_trial(pair.a.send_tool(), server=missing))
    failed = lead.only("trial_failed")
    assert failed["code"] == "server_did_not_start"
    assert "host b" in failed["message"]
    assert "no-such-program" in failed["message"]


def test_a_remote_server_that_died_under_load_is_reported(pair: Pair) -> None:
    pair.b.send_source({"server.py": BOUND.format(extra=TELLS_PID)})
    killing = a_load(
        "{python}",
        "-c",
        "import os, subprocess, sys, time\n"
        "code = subprocess.call(sys.argv[1:4])\n"
        "os.kill(int(open(sys.argv[4]).read()), 9)\n"
        "time.sleep(0.2)\n"
        "sys.exit(code)",
        *("{tool}", "{out}", "{rows}", str(pair.b.root / "builds/c0ffee-r/tree/pid")),
    )
    lead, _ = pair.run(a_far_trial(pair.a.send_tool(), loads=[killing]))
    failed = lead.only("trial_failed")
    assert failed["code"] == "server_died"
    assert "-9" in failed["message"]


def test_a_build_that_fails_on_the_other_host_fails_its_trials(pair: Pair) -> None:
    lead, follower = pair.run(
        a_far_trial(pair.a.send_tool()), builds=[a_build(on=["b"], steps=[["false"]])]
    )
    assert follower.named("build_failed")
    assert lead.only("trial_failed")["code"] == "build_failed"


def test_each_host_builds_only_what_it_needs(pair: Pair) -> None:
    pair.a.send_source({"tool.py": ""})
    both = [a_build(on=["b"]), a_build(on=["a"], tree="builds/other-r", commit="c0ffee")]
    lead, follower = pair.run(a_far_trial(pair.a.send_tool()), builds=both)
    assert len(lead.named("build_done")) == len(follower.named("build_done")) == 1
    assert (pair.a.root / "builds/other-r/tree/tool.py").exists()
    assert not (pair.b.root / "builds/other-r").exists()


def test_a_round_without_trials_ends_immediately(pair: Pair) -> None:
    lead, follower = pair.run(builds=[])
    assert [e["event"] for e in lead.events] == ["supervisor_started", "round_done"]
    assert follower.events[-1]["event"] == "round_done"


def in_the_middle(pair: Pair, **changes: float) -> tuple:
    """Lead and follower with the load on, and the pids of server and tool."""
    pair.b.send_source({"server.py": BOUND.format(extra=TELLS_PID)})
    load = a_load("{python}", "-c", BUSY, "{trial_dir}/tool.pid", wall_limit_s=200)
    trial = a_far_trial(pair.a.send_tool(), loads=[load])
    follower, port = pair.follow(trial, **changes)
    lead = pair.lead(port, trial, **changes)
    tool = pids_in(lead.folder / "trials/t1/tool.pid", 1)
    server = pids_in(pair.b.root / "builds/c0ffee-r/tree/pid", 1)
    return lead, follower, [*server, *tool]


def have_all_ended(pids: list[int]) -> bool:
    return not any(map(is_running, pids))


def test_the_lead_ends_when_the_follower_is_killed(pair: Pair) -> None:
    lead, follower, pids = in_the_middle(pair)
    os.kill(follower.pid, signal.SIGKILL)
    lead.await_end()
    aborted = lead.only("aborted")
    assert aborted["code"] == "peer_lost"
    assert "host b" in aborted["reason"]
    assert "127.0.0.2" in aborted["reason"]
    wait_until(lambda: have_all_ended(pids), "server or tool lives on")


def test_the_follower_ends_when_the_lead_is_killed(pair: Pair) -> None:
    lead, follower, pids = in_the_middle(pair)
    os.kill(lead.pid, signal.SIGKILL)
    follower.await_end()
    assert follower.only("aborted")["code"] == "peer_lost"
    wait_until(lambda: have_all_ended(pids), "server or tool lives on")


def test_the_lead_ends_when_the_follower_does_not_respond(pair: Pair) -> None:
    lead, follower, pids = in_the_middle(pair)
    os.kill(follower.pid, signal.SIGSTOP)  # its kernel answers still
    try:
        lead.await_end()
    finally:
        os.kill(follower.pid, signal.SIGCONT)
    assert lead.only("aborted")["code"] == "peer_lost"
    follower.await_end()
    assert follower.only("aborted")["code"] == "peer_lost"
    wait_until(lambda: have_all_ended(pids), "server or tool lives on")


def test_both_hosts_end_when_the_lead_is_stopped(pair: Pair) -> None:
    lead, follower, pids = in_the_middle(pair)
    pair.a.verb("stop", lead.job, lead.name)
    follower.await_end()
    lead.read_status()
    assert lead.only("aborted")["code"] == "stopped"
    assert follower.only("aborted")["code"] == "peer_lost"
    wait_until(lambda: have_all_ended(pids), "server or tool lives on")


def test_a_round_continues_while_only_the_lead_is_polled(pair: Pair) -> None:
    """A follower that nobody looks at is kept alive by its lead's signs of life."""
    trial = a_far_trial(pair.a.send_tool(), cooldown_s=8.0)
    follower, port = pair.follow(trial, silence_s=4.0)
    lead = pair.lead(port, trial, silence_s=4.0)
    lead.poll_until_end()
    follower.await_end()
    assert follower.events[-1]["event"] == "round_done", follower.events


def test_the_follower_does_not_wait_forever_for_a_lead(pair: Pair) -> None:
    follower, _ = pair.follow(silence_s=1.0, builds=[])
    follower.await_end()
    aborted = follower.only("aborted")
    assert aborted["code"] == "peer_lost"
    assert "no lead came" in aborted["reason"]


def test_an_unreachable_follower_is_reported(pair: Pair) -> None:
    with socket.create_server((ADDRESSES["b"], 0)) as closed:
        port = closed.getsockname()[1]
    lead = pair.lead(port, a_far_trial("tools/fake"))
    lead.await_end()
    assert lead.only("aborted")["code"] == "peer_lost"
    assert f"127.0.0.2:{port}" in lead.only("aborted")["reason"]
    assert not lead.named("trial_started")


def test_a_lead_with_another_secret_is_refused(pair: Pair) -> None:
    trial = a_far_trial(pair.a.send_tool())
    follower, port = pair.follow(trial)
    stranger = pair.lead(port, trial, secret="57" * 32)
    stranger.await_end()
    assert stranger.only("aborted")["code"] == "peer_lost"
    lead = pair.lead(port, trial, step="a1-r1b")  # another step's lead is a stranger, too
    lead.await_end()
    assert lead.only("aborted")["code"] == "peer_lost"
    assert follower.read_status()["alive"] is True
    assert not follower.named("aborted")


@contextlib.contextmanager
def led(pair: Pair, trial: dict[str, Any]) -> Iterator[FollowerConnection]:
    """The follower's line in our own hands."""
    follower, port = pair.follow(trial)
    place = build_scope(follower.job, follower.name, "b")
    peer = connect("b", Host(ADDRESSES["b"], port), SECRET, place)
    try:
        yield peer
    finally:
        peer.close()


REFUSED: tuple[dict[str, Any], ...] = (
    {"name": "start", "trial": "t9", "process": "server", "placeholders": {}},
    {"name": "start", "trial": "t1", "process": "service:db:1", "placeholders": {}},
    {"name": "start", "trial": "t1", "process": "server", "placeholders": {"python": "/bin/sh"}},
    {
        "name": "start",
        "trial": "t1",
        "process": "server",
        "placeholders": {"app_host": "x; reboot"},
    },
    {"name": "start", "trial": "t1", "process": "server", "placeholders": {"app_host": 5}},
    {"name": "start", "trial": "t1", "process": "server", "placeholders": {}, "argv": ["/bin/sh"]},
    {"name": "stop", "process": "server"},
    {"name": "serve"},
)


def test_a_follower_starts_only_what_its_own_plan_contains(pair: Pair) -> None:
    app = {
        "name": "app",
        "on": "a",
        "count": 1,
        "argv": ["true"],
        "env": {},
        "port": None,
        "limits": limits(),
        "ready": {"path": None, "status": 200, "timeout_s": 1},
    }
    with led(pair, a_far_trial("tools/fake", services=[app])) as peer:
        for call in REFUSED:
            words = {key: value for key, value in call.items() if key != "name"}
            with pytest.raises(AgentError, match="host b: "):
                peer.call(call["name"], lambda: None, **words)
        given = {"app_host": "10.0.0.1", "app_port": "1", "app_addresses": "[::1]:1,h-1:2"}
        started = peer.call("start", lambda: None, trial="t1", process="server", placeholders=given)
        assert started["argv"][1:] == ["server.py", ADDRESSES["b"], str(started["port"])]
        peer.call("end_round", lambda: None)


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on the loopback")
def test_two_hosts_can_use_ipv6(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADDRESSES, "b", "::1")
    server = BOUND.format(
        extra="import socket\nsocketserver.TCPServer.address_family = socket.AF_INET6"
    )
    pair.b.send_source({"server.py": server})
    tool = pair.a.send_tool(FAKE_TOOL.replace("out, rows", ASK + "out, rows"))
    load = a_load("{tool}", "{out}", "{rows}", "http://{address}:{port}/hello")
    lead, _ = pair.run(a_far_trial(tool, loads=[load]))
    assert lead.named("trial_done"), lead.events
    assert lead.file("t1", "result.json")["loads"][0]["argv"][3].startswith("http://[::1]:")
