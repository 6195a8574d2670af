"""The agent on the virtual machine, called over SSH as the orchestrator calls it."""

import io
import json
import tarfile
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from agents.hostagent.bundle import build_bundle
from tests.agents.support import COMMIT, FAKE_TOOL, a_load, a_plan, a_ready, a_server, a_trial
from tests.vm.machine import COMMAND_TIMEOUT_S, Machine

PYTHON = "/usr/bin/python3"
STEP_TIMEOUT_S = 120
_numbers = count(1)

#: Answers as the tests' server does. `{extra}` runs in a thread once the file /tmp/go exists.
SERVER = """
import http.server, os, sys, threading, time
def act():
    while not os.path.exists("/tmp/go"):
        time.sleep(0.1)
    {extra}
threading.Thread(target=act, daemon=True).start()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Hello, World!")
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
#: The load lasts until this file exists.
_WAIT = """
import os, sys, time
while "--version" not in sys.argv and not os.path.exists("/tmp/end"):
    time.sleep(0.1)
"""


class MachineAgent:
    def __init__(self, machine: Machine, user: str) -> None:
        self.machine = machine
        self.user = user
        self._program = f"agents/{build_bundle().name}"
        with machine.connect(user) as transport:
            transport.put(build_bundle().content, self._program)
            tool = f"#!{PYTHON}\n{_WAIT}{FAKE_TOOL}"
            transport.put(tool.encode(), "tools/fake", mode=0o755)

    def call(self, *words: str) -> dict[str, Any]:
        argv = [PYTHON, "-I", "-S", self._program, "--root", ".", *words]
        with self.machine.connect(self.user) as transport:
            done = transport.run(argv, timeout_s=COMMAND_TIMEOUT_S)
        answer: dict[str, Any] = json.loads(done.stdout or b"{}")
        assert "error" not in answer, answer
        assert done.exit_status == 0, done.stderr
        return answer

    def run_module(self, code: str) -> Any:
        """Return the JSON that Python code prints, which imports modules of the agent."""
        modules = self._program.removesuffix(".pyz")
        self.call("facts")  # unpacks it
        script = f"import sys\nsys.path.insert(0, {modules!r})\n{code}"
        with self.machine.connect(self.user) as transport:
            argv = [PYTHON, "-I", "-S", "-c", script]
            done = transport.run(argv, timeout_s=COMMAND_TIMEOUT_S)
        assert done.exit_status == 0, done.stderr
        return json.loads(done.stdout)

    def gather_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = self.call("facts")["facts"]
        return facts

    def run_trial(
        self,
        under_load: Callable[[], object] = lambda: None,
        *,
        extra: str = "pass",
        limits: dict[str, Any] | None = None,
        tool: dict[str, Any] | None = None,
        shares: list[dict[str, Any]] | None = None,
        **changes: Any,
    ) -> "Outcome":
        """Run one trial and call `under_load` in the middle of its load.

        `extra`: what the server does from that call on. `limits`, `tool`: those of the server and
        of the load tool. `shares`: those of the machine's CPUs.
        """
        number = next(_numbers)
        job, commit = f"j{number}", f"{COMMIT}{number}"
        self.machine.run("rm -f /tmp/go /tmp/end")
        tree = f"builds/{commit}-r"
        server = a_server(**({"limits": limits} if limits else {}))
        trial = a_trial(
            "tools/fake",
            tree=tree,
            commit=commit,
            server=server,
            loads=[a_load(wall_limit_s=150.0)],
            shares={"a": shares or []},
        )
        trial["ready"] = a_ready(timeout_s=90)
        trial["tool"].update({"limits": tool} if tool else {})
        plan = a_plan(trial, job=job, **changes)
        plan["builds"][0].update(
            id=f"{commit}-r", commit=commit, tree=tree,
            source={"archive": f"sources/{commit}.tar.gz"},
        )  # fmt: skip
        self._send(job, commit, plan, extra)
        pid = self.call("start", job, "a1-r1")["pid"]
        outcome = Outcome(self, job, pid)
        outcome.await_phase("measuring")
        self.machine.run("touch /tmp/go")
        under_load()
        self.machine.run("touch /tmp/end")
        outcome.await_end()
        return outcome

    def await_server_end(self) -> None:
        """Wait until the machine has no process of a server."""
        search = "grep -qa 'server[.]py' /proc/[0-9]*/cmdline 2>/dev/null"
        self.machine.run(f"for each in $(seq 90); do {search} || exit 0; sleep 1; done; exit 1")

    def _send(self, job: str, commit: str, plan: dict[str, Any], extra: str) -> None:
        with self.machine.connect(self.user) as transport:
            transport.put(_pack(SERVER.format(extra=extra)), f"sources/{commit}.tar.gz")
            transport.put(json.dumps(plan).encode(), f"jobs/{job}/a1-r1/plan.json")


class Outcome:
    """A running or ended trial."""

    def __init__(self, agent: MachineAgent, job: str, pid: int) -> None:
        self._agent = agent
        self._job = job
        self.pid = pid
        self.events: list[dict[str, Any]] = []

    def await_phase(self, phase: str) -> None:
        self._poll(lambda _: any(each.get("phase") == phase for each in self.events))

    def await_end(self) -> None:
        self._poll(lambda status: not status["alive"])

    def only(self, event: str) -> dict[str, Any]:
        (record,) = [each for each in self.events if each["event"] == event]
        return record

    def read_result(self) -> dict[str, Any]:
        failed = [each for each in self.events if each["event"] == "trial_failed"]
        assert not failed, failed
        path = f"jobs/{self._job}/a1-r1/trials/t1/result.json"
        with self._agent.machine.connect(self._agent.user) as transport:
            result: dict[str, Any] = json.loads(transport.get(path, limit=1 << 20))
        return result

    def _poll(self, is_reached: Callable[[dict[str, Any]], bool]) -> None:
        deadline = time.monotonic() + STEP_TIMEOUT_S
        while True:
            status = self._agent.call("status", self._job, "a1-r1", "--offset", "0")
            self.events = status["events"]
            if is_reached(status):
                return
            assert status["alive"], self.events
            assert time.monotonic() < deadline, self.events
            time.sleep(0.5)


def _pack(server: str) -> bytes:
    """Return an archive with the file server.py."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        member = tarfile.TarInfo("server.py")
        member.size = len(server.encode())
        archive.addfile(member, io.BytesIO(server.encode()))
    return file.getvalue()
