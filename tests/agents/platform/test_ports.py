"""Two programs that got the same free port: only the trial's own server is measured."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.agents.pair import needs_linux
from tests.agents.support import (
    FAKE_TOOL,
    SERVER,
    AgentHost,
    a_load,
    a_plan,
    a_server,
    a_trial,
)
from tests.support.programs import program
from tests.support.waiting import wait_until

pytestmark = needs_linux
ROOT = Path(__file__).resolve().parents[3]
#: Waits at its first start until somebody else has its port, and never listens then.
SLOW = """
import socket
ports = sys.argv[2]
first = not os.path.exists(ports)
with open(ports, "a") as file:
    file.write(sys.argv[1] + "\\n")
while first:
    time.sleep(0.1)
"""


class Intruder(BaseHTTPRequestHandler):
    """Answers as the trial's server does."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Hello, World!")

    def log_message(self, format: str, *args: object) -> None:
        pass


def race(host: AgentHost, tmp_path: Path, port: int | None) -> tuple[list[str], dict[str, Any]]:
    """A trial whose port is taken by this process; the ports of its starts, and the trial's end."""
    ports = tmp_path / "ports"
    host.send_source({"server.py": SERVER.format(extra=SLOW)})
    server = a_server(argv=["{python}", "server.py", "{port}", str(ports)], port=port)
    step = host.start(a_plan(a_trial(host.send_tool(), server=server)))
    wait_until(lambda: ports.exists() and ports.read_text().endswith("\n"), "no server started")
    with HTTPServer(("127.0.0.1", int(ports.read_text())), Intruder) as intruder:
        threading.Thread(target=intruder.serve_forever, daemon=True).start()
        step.await_end()
        intruder.shutdown()
    return ports.read_text().split(), {
        "done": step.named("trial_done"),
        "failed": step.named("trial_failed"),
        "result": step.file("t1", "result.json") if step.named("trial_done") else {},
    }


def test_a_server_that_lost_its_port_is_started_on_another_one(
    host: AgentHost, tmp_path: Path
) -> None:
    ports, end = race(host, tmp_path, None)
    assert len(set(ports)) == 2
    assert end["failed"] == []
    assert end["result"]["port"] == int(ports[1])
    assert end["result"]["port_checked"] is True


def test_a_lost_port_of_the_plan_fails_the_trial(host: AgentHost, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _, end = race(host, tmp_path, port)
    (failed,) = end["failed"]
    assert failed["code"] == "port_in_use"
    assert f"another program than the server listens on port {port}" in failed["message"]


#: Says whose it is; late, so that another server may have the port by then.
WHOSE = SERVER.format(extra="time.sleep(0.3)").replace(
    'b"Hello, World!"', 'os.getcwd().encode() if request[1] == b"/who" else b"Hello, World!"'
)
ASKING_TOOL = FAKE_TOOL.replace(
    "out, rows = sys.argv[1:3]",
    "import urllib.request\nout, rows, port = sys.argv[1:4]\n"
    "who = urllib.request.urlopen(f'http://127.0.0.1:{port}/who').read().decode()",
).replace('{"fake": True}', '{"who": who}')
TRIALS = 6


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("unshare"),
    reason="a network with few ports takes root",
)
def test_two_agents_that_race_for_few_ports_each_measure_their_own_servers(tmp_path: Path) -> None:
    program("ip")
    words = ["unshare", "--net", sys.executable, "-m", "tests.agents.platform.test_ports"]
    done = subprocess.run(
        [*words, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    summary = json.loads(done.stdout)
    assert summary == {"trials": 2 * TRIALS, "of_others": [], "failed": []}


def race_for_ports(folder: Path) -> dict[str, object]:
    """In a network namespace of its own, whose kernel has six ports to choose from."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    ipv4 = Path("/proc/sys/net/ipv4")
    (ipv4 / "ip_local_port_range").write_text("40000 40005")
    # Ports of connections that are over are free at once.
    (ipv4 / "tcp_max_tw_buckets").write_text("0")
    steps = []
    for name in ("one", "two"):
        host = AgentHost(folder / name)
        host.send_source({"server.py": WHOSE})
        tool = host.send_tool(ASKING_TOOL)
        load = a_load("{tool}", "{out}", "{rows}", "{port}")
        trials = [a_trial(tool, id=f"t{number}", loads=[load]) for number in range(TRIALS)]
        steps.append(host.start(a_plan(*trials)))
    for step in steps:
        step.await_end()
    results = [
        (step, step.file(event["trial"], "tool.json")["who"], event["trial"])
        for step in steps
        for event in step.named("trial_done")
    ]
    others = [trial for step, who, trial in results if not who.startswith(str(step.host.root))]
    failed = [each["message"] for step in steps for each in step.named("trial_failed")]
    return {"trials": len(results), "of_others": others, "failed": failed}


if __name__ == "__main__":
    print(json.dumps(race_for_ports(Path(sys.argv[1]))))
