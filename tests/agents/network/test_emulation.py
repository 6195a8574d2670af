"""Networks between real namespaces. Delay, jitter and loss need a kernel with sch_netem."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.network.capability import check_capability
from agents.hostagent.network.emulation import emulate
from agents.hostagent.network.iproute import run_command
from agents.hostagent.step.plan import Network
from orchestrator.loadtools.emulated_network import EmulatedNetwork
from orchestrator.loadtools.network_checks import find_differences
from tests.agents.pair import BOUND
from tests.agents.support import (
    FAKE_TOOL,
    AgentHost,
    a_check,
    a_load,
    a_plan,
    a_server,
    a_trial,
    is_running,
)
from tests.support.waiting import wait_until

AVAILABLE, PROBLEM = check_capability()
#: The interfaces that `tests/support/bridge.py` makes.
OTHERS = re.compile(r"pitwall\d+|pw\d+-.*")
needs_link = pytest.mark.skipif("rate" not in AVAILABLE, reason=f"no emulated network: {PROBLEM}")
needs_netem = pytest.mark.skipif("delay" not in AVAILABLE, reason=f"no netem: {PROBLEM}")
RATE = {"delay_s": 0.0, "jitter_s": 0.0, "loss": 0.0, "rate_bps": 20e6}
#: Writes its namespace and that of the server's process; asks the server over the link.
ASK = f"""
import os, sys, urllib.request
if "--version" not in sys.argv:
    with open(os.path.join(os.path.dirname(sys.argv[1]), "tool"), "w") as file:
        file.write(os.readlink("/proc/self/ns/net"))
    assert urllib.request.urlopen(sys.argv[3]).read() == b"Hello, World!"
    if len(sys.argv) > 4:
        __import__("time").sleep(60)
{FAKE_TOOL}
"""
#: Writes its pid and its namespace.
SAYS = """
with open(os.path.join(sys.argv[3], "server"), "w") as file:
    file.write(f"{os.getpid()}\\n{os.readlink('/proc/self/ns/net')}")
"""


def run_on_link(host: AgentHost, *words: str, network: dict[str, Any] = RATE) -> dict[str, Any]:
    """Return a trial whose server and tool are at the ends of a link."""
    host.send_source({"server.py": BOUND.format(extra=SAYS)})
    argv = ["{python}", "server.py", "{bind}", "{port}", "{trial_dir}"]
    load = a_load("{tool}", "{out}", "{rows}", "http://{address}:{port}/hello", *words)
    return a_trial(
        host.send_tool(ASK),
        server=a_server(argv=argv),
        checks=[a_check(during_load=True)],
        loads=[load],
        network=network,
    )


def find_processes_in(namespace: str) -> list[str]:
    """Return the processes of this machine in a network namespace."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns/net") == namespace:
                found.append(entry.name)
        except OSError:
            continue
    return found


@pytest.mark.quiet
@needs_link
def test_server_and_tool_are_at_the_ends_of_a_link_with_the_rate(host: AgentHost) -> None:
    step = host.run_round(a_plan(run_on_link(host)))
    assert step.only("trial_done"), step.events
    result, folder = step.file("t1", "result.json"), step.folder / "trials/t1"
    assert list(find_differences(EmulatedNetwork(**RATE), result["network"])) == []
    for direction in ("requests", "responses"):
        assert result["network"]["rate_bps"][direction] == pytest.approx(20e6, rel=0.05)
    server, tool = (folder / "server").read_text().split()[1], (folder / "tool").read_text()
    assert len({server, tool, os.readlink("/proc/self/ns/net")}) == 3
    assert result["port_checked"]
    assert result["build"]["checked"]
    assert find_processes_in(server) == find_processes_in(tool) == []


def list_interfaces() -> list[str]:
    """Return the interfaces of this machine without those of namespace hosts of other tests."""
    return sorted(each for each in os.listdir("/sys/class/net") if not OTHERS.fullmatch(each))


@needs_link
def test_nothing_of_it_is_left_after_kill_9(host: AgentHost) -> None:
    interfaces = list_interfaces()
    step = host.start(a_plan(run_on_link(host, "sleep")))
    trial = step.folder / "trials/t1"
    wait_until(lambda: (trial / "tool").exists(), "the tool does not start")
    pids, tool = [int((trial / "server").read_text().split()[0])], (trial / "tool").read_text()
    server = (trial / "server").read_text().split()[1]
    assert list_interfaces() == interfaces
    os.kill(step.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, [*pids, step.pid])), "the server is left")
    # The kernel keeps a namespace only for what is in it.
    wait_until(lambda: not find_processes_in(server) and not find_processes_in(tool), "left")
    assert list_interfaces() == interfaces


@needs_netem
def test_round_trips_loss_and_rate_are_as_asked() -> None:
    network = Network(delay_s=0.04, jitter_s=0.004, loss=0.01, rate_bps=50e6)
    with emulate(network) as emulated:
        measured = emulated.as_json()
    assert measured["round_trip_s"] == pytest.approx(0.04, rel=0.05)
    assert list(find_differences(EmulatedNetwork(**network._asdict()), measured)) == []


def replace_tc(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put another `tc` first on the PATH."""
    program = folder / "bin/tc"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@needs_link
def test_a_network_that_was_not_applied_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_tc(tmp_path, monkeypatch, "exit 0")
    network = Network(delay_s=0.02, jitter_s=0.002, loss=0.01, rate_bps=None)
    with emulate(network) as emulated:
        measured = emulated.as_json()
    differences = list(find_differences(EmulatedNetwork(**network._asdict()), measured))
    assert len(differences) == 4
    assert "round trip" in differences[0]
    assert "jitter" in differences[1]
    assert differences[2].startswith("0 of 5,000 packets of requests were lost")


@needs_link
def test_a_change_under_load_is_seen() -> None:
    with emulate(Network(**RATE)) as emulated:
        before = emulated.as_json()
        # This thread is on the server's side, as measured code is.
        run_command(("tc", "qdisc", "del", "dev", "server", "root"))
        after = emulated.as_json()
    assert (before["changed"], after["changed"]) == (False, True)


@needs_link
def test_a_refused_command_fails_the_trial_with_its_message(
    host: AgentHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = "echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2"
    replace_tc(tmp_path, monkeypatch, refuses)
    step = host.run_round(a_plan(run_on_link(host)))
    failed = step.only("trial_failed")
    assert failed["code"] == "network_failed"
    assert "tc qdisc add dev load root" in failed["message"]
    assert "kind is unknown" in failed["message"]
