"""Services of a trial: started before the server, in order, ready; ended after it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.pair import Pair, a_far_trial, needs_linux, two_hosts
from tests.agents.support import (
    SERVER,
    AgentHost,
    Step,
    a_load,
    a_plan,
    a_server,
    a_trial,
    is_running,
    limits,
    pids_in,
)

#: Sends its name to each client, and adds a line to `order` when it starts and when it ends.
NAMED = """
import os, signal, socket, sys
name, bind, port, order = sys.argv[1:5]
def tell(what):
    with open(order, "a") as file:
        file.write(f"{what} {name} {os.getpid()}\\n")
def end(*_):
    tell("end")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
listener = socket.create_server((bind, int(port)))
tell("start")
while True:
    connection, _ = listener.accept()
    connection.sendall(name.encode())
    connection.close()
"""
#: A server that asks all the addresses that it is given before it serves.
ASKING = """
import signal, socket
def say(address):
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection:
        return connection.recv(100).decode()
print(",".join(say(address) for address in sys.argv[2].split(",")), flush=True)
def end(*_):
    with open(sys.argv[3], "a") as file:
        file.write(f"end server {os.getpid()}\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
"""


def a_service(name: str, **changes: Any) -> dict[str, Any]:
    plain = {
        "name": name,
        "on": "a",
        "count": 1,
        "argv": ["{python}", "named.py", name, "{bind}", "{port}", "{tree}/order"],
        "env": {},
        "limits": limits(),
        "port": None,
        "ready": {"path": None, "status": 200, "timeout_s": 10},
    }
    return {**plain, **changes}


@pytest.fixture
def host(host: AgentHost) -> AgentHost:
    host.send_source({"server.py": SERVER.format(extra=ASKING), "named.py": NAMED})
    return host


def asking(addresses: str, **changes: Any) -> dict[str, Any]:
    return a_server(argv=["{python}", "server.py", "{port}", addresses, "{tree}/order"], **changes)


def read_order(folder: Path) -> list[str]:
    lines = (folder / "builds/c0ffee-r/tree/order").read_text().splitlines()
    return [line.rpartition(" ")[0] for line in lines]


def read_pids(folder: Path) -> list[int]:
    lines = (folder / "builds/c0ffee-r/tree/order").read_text().splitlines()
    return [int(line.rpartition(" ")[2]) for line in lines]


def failed(step: Step, code: str) -> dict[str, Any]:
    event = step.only("trial_failed")
    assert event["code"] == code, event
    return event


def test_three_replicas_start_and_the_server_gets_their_addresses(host: AgentHost) -> None:
    trial = a_trial(
        host.send_tool(),
        services=[a_service("app", count=3, limits=limits(open_files=200)), a_service("front")],
        server=asking("{app_addresses},{front_host}:{front_port}"),
    )
    step = host.run_round(a_plan(trial))
    assert step.named("trial_done"), step.events
    log = (step.folder / "trials/t1/server.log").read_text()
    assert log.splitlines()[0] == "app,app,app,front"
    starts, ends = ["start app"] * 3 + ["start front"], ["end front"] + ["end app"] * 3
    assert read_order(host.root) == [*starts, "end server", *ends]
    assert not any(map(is_running, read_pids(host.root)))
    applied = step.file("t1", "result.json")["limits"]
    services = {"service:app:1", "service:app:2", "service:app:3", "service:front:1"}
    assert set(applied) == {"server", "tool"} | services
    assert applied["service:app:3"]["open_files"] == 200


def test_placeholders_of_services_are_filled_in_for_the_load(host: AgentHost) -> None:
    load = a_load("{tool}", "{out}", "{rows}", "{app_host}", "{app_port}", "{app_addresses}")
    trial = a_trial(
        host.send_tool(),
        services=[a_service("app")],
        server=asking("{app_addresses}"),
        loads=[load],
    )
    step = host.run_round(a_plan(trial))
    _, _, _, address, port, addresses = step.file("t1", "result.json")["loads"][0]["argv"]
    assert (address, addresses) == ("127.0.0.1", f"127.0.0.1:{port}")


def test_readiness_of_a_service_is_checked(host: AgentHost) -> None:
    ready = {"path": "/hello", "status": 200, "timeout_s": 10}
    web = a_service("web", argv=["{python}", "plain.py", "{port}"], ready=ready)
    sources = {"server.py": SERVER.format(extra=""), "plain.py": SERVER.format(extra="")}
    host.send_source(sources)
    assert host.run_round(a_plan(a_trial(host.send_tool(), services=[web]))).named("trial_done")


def test_the_output_of_a_service_that_does_not_start_is_shown(host: AgentHost) -> None:
    broken = a_service("db", argv=["{python}", "-c", "import sys; sys.exit('no data folder')"])
    trial = a_trial(host.send_tool(), services=[a_service("app"), broken])
    event = failed(host.run_round(a_plan(trial)), "service_not_ready")
    assert "service db (process 1) ended with 1" in event["message"]
    assert "no data folder" in event["output"]
    assert read_order(host.root) == ["start app", "end app"]


def test_a_service_that_is_never_ready_fails_the_trial(host: AgentHost) -> None:
    nap = ["{python}", "-c", "print('loading', flush=True); __import__('time').sleep(60)"]
    ready = {"path": None, "status": 200, "timeout_s": 0.3}
    trial = a_trial(host.send_tool(), services=[a_service("db", argv=nap, ready=ready)])
    event = failed(host.run_round(a_plan(trial)), "service_not_ready")
    assert "accept a connection" in event["message"]
    assert "loading" in event["output"]


def test_a_missing_program_of_a_service_is_reported(host: AgentHost) -> None:
    trial = a_trial(host.send_tool(), services=[a_service("db", argv=["no-such-program"])])
    event = failed(host.run_round(a_plan(trial)), "service_not_ready")
    assert "no-such-program" in event["message"]


def test_a_service_that_dies_under_load_fails_the_trial(host: AgentHost) -> None:
    killing = a_load(
        "{python}",
        "-c",
        "import os, subprocess, sys, time\n"
        "code = subprocess.call(sys.argv[1:4])\n"
        "os.kill(int(open(sys.argv[4]).read().split()[2]), 9)\n"
        "time.sleep(0.2)\n"
        "sys.exit(code)",
        *("{tool}", "{out}", "{rows}", "{tree}/order"),
    )
    trial = a_trial(
        host.send_tool(),
        services=[a_service("app")],
        server=asking("{app_addresses}"),
        loads=[killing],
    )
    event = failed(host.run_round(a_plan(trial)), "service_died")
    assert "service app (process 1) ended with -9 under load" in event["message"]


#: Leaves a child behind that spins in its session, and whose parent has ended.
SPINNING = """
import os, socket, sys
if os.fork() == 0:
    if os.fork():
        os._exit(0)
    open(sys.argv[3], "w").write(str(os.getpid()))
    while True:
        pass
os.wait()
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    listener.accept()
"""


@needs_linux
def test_an_orphan_of_a_service_does_not_count_for_the_server(host: AgentHost) -> None:
    host.send_source({"server.py": SERVER.format(extra="")})
    argv = ["{python}", "-c", SPINNING, "{bind}", "{port}", "{trial_dir}/spinning"]
    wait = "import subprocess, sys, time; time.sleep(1.2); subprocess.call(sys.argv[1:])"
    load = a_load("{python}", "-c", wait, "{tool}", "{out}", "{rows}")
    trial = a_trial(host.send_tool(), services=[a_service("app", argv=argv)], loads=[load])
    step = host.run_round(a_plan(trial))
    (load,) = step.file("t1", "result.json")["loads"]
    window_s = load["load_ended_at"] - load["load_started_at"]
    assert load["usage"]["server_cpu_s"] < window_s / 4
    (spinning,) = pids_in(step.folder / "trials/t1/spinning", 1)
    assert not is_running(spinning)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with two_hosts(tmp_path) as pair:
        bound = SERVER.replace('"127.0.0.1", int(sys.argv[1])', "sys.argv[4], int(sys.argv[1])")
        pair.b.send_source({"server.py": bound.format(extra=ASKING), "named.py": NAMED})
        yield pair


@needs_linux
def test_services_run_on_both_hosts(pair: Pair) -> None:
    """The server on b, replicas on b, and one that needs no tree on the lead."""
    near = a_service(
        "near",
        argv=["{python}", "-c", NAMED, "near", "{bind}", "{port}", "{trial_dir}/order"],
    )
    server = asking("{app_addresses},{near_addresses}", on="b")
    server["argv"].append("{bind}")
    trial = a_far_trial(
        pair.a.send_tool(),
        services=[near, a_service("app", on="b", count=2)],
        server=server,
    )
    lead, follower = pair.run(trial)
    assert lead.named("trial_done"), lead.events
    log = (lead.folder / "trials/t1/server.log").read_text()
    assert log.splitlines()[0] == "app,app,near"
    assert read_order(pair.b.root) == ["start app"] * 2 + ["end server"] + ["end app"] * 2
    assert not any(map(is_running, read_pids(pair.b.root)))
    near_order = (lead.folder / "trials/t1/order").read_text()
    assert [line.split()[0] for line in near_order.splitlines()] == ["start", "end"]
    result = lead.file("t1", "result.json")
    assert "service:app:2" in result["limits"]
    assert set(result["loads"][0]["interference"]) == {"a", "b"}
    usage = result["loads"][0]["usage"]
    assert usage["services_cpu_s"] >= 0  # those of both hosts
    assert "services_cpu_s" not in usage["reasons"]
    assert follower.events[-1]["event"] == "round_done"
