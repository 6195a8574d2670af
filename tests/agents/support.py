"""A host's work directory with the real agent in it, driven by its command line as over SSH."""

import compileall
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agents.hostagent.bundle import build_bundle
from agents.hostagent.commands.stop import stop_all
from agents.hostagent.protocol import SCHEMA
from agents.hostagent.unpacking import unpack
from tests.support.waiting import wait_until

HELLO = Path(__file__).parents[2] / "agents/suites/hello/server.py"
PATIENCE_S = 120.0
#: The Python that runs the agent; the oldest that it knows is worth a try.
PYTHON = os.environ.get("PITWALL_AGENT_PYTHON", sys.executable)
COMMIT = "c0ffee"

#: A load tool that writes what the agent expects, without any load: `tool OUT ROWS`.
FAKE_TOOL = """
import json, sqlite3, sys
if "--version" in sys.argv:
    print("fake 1.2.3")
    sys.exit(0)
out, rows = sys.argv[1:3]
with open(out, "w") as file:
    json.dump({"fake": True}, file)
database = sqlite3.connect(rows)
database.execute("CREATE TABLE oha (url, start, start_latency_correction, end, duration, status,"
                 " len_bytes, run)")
database.execute("INSERT INTO oha VALUES ('u', 0.5, NULL, 0.75, 0.25, 200, 13, 1)")
database.commit()
"""

#: Answers every GET as hello does; {extra} is put in before it serves. The start of a server with
#: `http.server` would need twice the CPU time.
SERVER = """
import os, socketserver, subprocess, sys, time
{extra}
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        request = self.rfile.readline().split()
        while self.rfile.readline().strip():
            pass
        if request:
            body = b"Hello, World!"
            self.wfile.write(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + body)
socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


_installations = tempfile.TemporaryDirectory(prefix="agent-")


@cache
def install_once() -> Path:
    """Return the zip application next to its unpacked and compiled modules.

    Each host of a test links to them. To unpack and compile them takes longer than most commands.
    """
    bundle = build_bundle()
    program = Path(_installations.name) / "agents" / bundle.name
    program.parent.mkdir()
    program.write_bytes(bundle.content)
    modules = program.with_suffix("")
    unpack(str(program), str(modules))
    modules.chmod(0o755)  # Some tests run it as another user.
    compileall.compile_dir(modules, quiet=1)
    return program


class AgentHost:
    """One work directory. `verb` runs the zip application, as the orchestrator does.

    `wrapper`: the beginning of each command line, such as a program that isolates the agent.
    """

    wrapper: tuple[str, ...] = ()

    def __init__(self, root: Path, python: str = PYTHON) -> None:
        self.root = root
        self.python = python
        for name in ("sources", "builds", "tools", "jobs"):
            (root / name).mkdir(parents=True)
        installed = install_once()
        shutil.copytree(installed.parent, root / "agents", copy_function=os.link)
        self.program = root / "agents" / installed.name

    def run(
        self, *words: str, user: int | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """`user`: who runs the agent, where the tests may choose that. `stdin`: its input."""
        return subprocess.run(
            [*self.wrapper, self.python, str(self.program), "--root", str(self.root), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            user=user,
        )

    def verb(self, *words: str, user: int | None = None, stdin: str = "") -> dict[str, Any]:
        done = self.run(*words, user=user, stdin=stdin)
        assert done.stdout, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == (1 if "error" in answer else 0)
        return answer

    def stop_all(self) -> None:
        """End all steps as the command `stop-all` does, but without a process for it."""
        stop_all(self.root, Namespace())

    def send_source(self, files: Mapping[str, str], commit: str = COMMIT) -> None:
        write_tar(self.root / f"sources/{commit}.tar.gz", files)

    def send_tool(self, source: str = FAKE_TOOL, name: str = "fake") -> str:
        """The plan's path of a Python program that plays the load tool."""
        path = self.root / "tools" / name
        path.write_text(f"#!{PYTHON}\n{source}")
        path.chmod(0o755)
        return f"tools/{name}"

    def send_plan(self, plan: dict[str, Any]) -> "Step":
        folder = self.root / "jobs" / plan["job"] / plan["step"]
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text(json.dumps(plan))
        return Step(self, plan["job"], plan["step"])

    def start(self, plan: dict[str, Any], secrets: Mapping[str, str] | None = None) -> "Step":
        """`secrets`: the values of those that the plan names."""
        step = self.send_plan(plan)
        stdin = json.dumps(secrets) if secrets else ""
        step.pid = self.verb("start", step.job, step.name, stdin=stdin)["pid"]
        return step

    def run_round(self, plan: dict[str, Any], secrets: Mapping[str, str] | None = None) -> "Step":
        step = self.start(plan, secrets)
        step.await_end()
        return step


class Step:
    """A step on the host, and the events of it read so far."""

    def __init__(self, host: AgentHost, job: str, name: str) -> None:
        self.host = host
        self.job = job
        self.name = name
        self.pid = 0
        self.offset = 0
        self.events: list[dict[str, Any]] = []
        self.alive = False

    @property
    def folder(self) -> Path:
        return self.host.root / "jobs" / self.job / self.name

    def read_status(self) -> dict[str, Any]:
        status = self.host.verb("status", self.job, self.name, "--offset", str(self.offset))
        self.offset = status["offset"]
        self.events += status["events"]
        self.alive = status["alive"]
        return status

    def await_event(self, name: str) -> dict[str, Any]:
        """Wait for it in the journal: to start the agent for each look would slow all tests."""
        journal = self.folder / "journal.jsonl"

        def is_written() -> bool:
            written = journal.exists() and f'"{name}"'.encode() in journal.read_bytes()
            return written or not is_running(self.pid)

        wait_until(is_written, f"no event {name}")
        wait_until(lambda: self.read_status() and self.named(name), f"no event {name}")
        return self.named(name)[0]

    def await_end(self) -> None:
        wait_until(lambda: not is_running(self.pid), "the supervisor does not end")
        self.read_status()

    def poll_until_end(self) -> None:
        """Ask the agent all the time, as an orchestrator does: a step without polls is aborted."""
        wait_until(lambda: not self.read_status()["alive"], "the supervisor does not end")

    def named(self, event: str) -> list[dict[str, Any]]:
        return [item for item in self.events if item["event"] == event]

    def only(self, event: str) -> dict[str, Any]:
        (record,) = self.named(event)
        return record

    def file(self, trial: str, name: str) -> Any:
        return json.loads((self.folder / "trials" / trial / name).read_bytes())


def write_tar(path: Path, files: Mapping[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def a_build(**changes: Any) -> dict[str, Any]:
    plain = {
        "id": f"{COMMIT}-r",
        "label": "",
        "commit": COMMIT,
        "source": {"archive": f"sources/{COMMIT}.tar.gz"},
        "tree": f"builds/{COMMIT}-r",
        "on": ["a"],
        "path": [],
        "install": None,
        "working_dir": None,
        "steps": [],
        "env": {},
        "timeout_s": 20,
    }
    return {**plain, **changes}


def an_install(**changes: Any) -> dict[str, Any]:
    """A build that installs something."""
    plain = {"key": "k", "files": [], "steps": [], "timeout_s": 20}
    return a_build(install={**plain, **changes})


def a_trial(tool_path: str, **changes: Any) -> dict[str, Any]:
    """A trial of server.py with a tool that is called `tool_path OUT ROWS`."""
    plain = {
        "id": "t1",
        "tree": f"builds/{COMMIT}-r",
        "commit": COMMIT,
        "path": {},
        "server": a_server(),
        "ready": a_ready(),
        "checks": [a_check()],
        "services": [],
        "prepare": [],
        "loads": [a_load()],
        "search": None,
        "files": {},
        "tool": a_tool(tool_path),
        "cooldown_s": 0.0,
        "expected_s": 1.0,
        "shares": {},
    }
    return {**plain, **changes}


def a_step(code: str, **changes: Any) -> dict[str, Any]:
    """A prepare step of a Python program; its key is the code."""
    plain = {
        "key": code,
        "argv": ["{python}", "-c", code],
        "env": {},
        "working_dir": None,
        "timeout_s": 20,
        "each": "trial",
        "after": "services",
    }
    return {**plain, **changes}


def a_ready(**changes: Any) -> dict[str, Any]:
    plain = {"path": "/hello", "status": 200, "body": None, "timeout_s": 10}
    return {**plain, "protocol": "h1", "tls": False, **changes}


def a_check(**changes: Any) -> dict[str, Any]:
    """The server of these tests, asked as the load asks it."""
    plain = {
        "name": "load",
        "method": "GET",
        "path": "/hello",
        "headers": [["accept", "*/*"]],
        "body": None,
        "protocol": "h1",
        "tls": False,
        "timeout_s": 5,
        "argv": None,
        "statuses": [200],
        "response_headers": {},
        "response": {"text": "Hello, World!"},
        "encoding": None,
        "grpc_status": None,
        "during_load": False,
        "volatile": [],
    }
    return {**plain, **changes}


def a_tool(path: str, **changes: Any) -> dict[str, Any]:
    """A tool that leaves what oha leaves."""
    plain = {"name": "fake", "path": path, "limits": limits(), "reader": "oha", "cpus": 1}
    return {**plain, **changes}


def a_server(**changes: Any) -> dict[str, Any]:
    plain = {
        "on": "a",
        "working_dir": None,
        "argv": ["{python}", "server.py", "{port}"],
        "env": {},
        "limits": limits(),
        "port": None,
    }
    return {**plain, **changes}


def limits(**changes: Any) -> dict[str, Any]:
    none = dict.fromkeys(("share", "cpu_quota", "memory_bytes", "open_files"))
    return {**none, **changes}


def a_load(*argv: str, **changes: Any) -> dict[str, Any]:
    words = list(argv) or ["{tool}", "{out}", "{rows}"]
    plain = {
        "env": {},
        "kind": "measure",
        "wall_limit_s": 20.0,
        "warmup_s": 0.0,
        "good_statuses": [200],
        "rate": None,
        "at_once": 4,
    }
    return {"argv": words, **plain, **changes}


def a_search(*objective: tuple[str, str, float], **changes: Any) -> dict[str, Any]:
    terms = [dict(zip(("metric", "op", "value"), each, strict=True)) for each in objective]
    plain = {"objective": terms, "low": 50.0, "high": 5000.0, "duration_s": 0.5, "requests": 1}
    return {**plain, "max_probes": 16, "confirmations": 1, **changes}


def a_plan(*trials: dict[str, Any], **changes: Any) -> dict[str, Any]:
    plain = {
        "schema": SCHEMA,
        "job": "j1",
        "step": "a1-r1",
        "silence_s": 600,
        # Tests run next to each other, so the host is busy.
        "quiet": {"busy_share": 1.0, "wait_s": 0},
        "disk": {"limit_bytes": 10 * 2**30, "keep_days": 30},
        "self": "a",
        "lead": "a",
        "secret": None,
        "hosts": {"a": {"address": "127.0.0.1", "port": None}},
        "tuning": {},
        "run_as": None,
        "tls": None,
        "builds": [a_build()],
        "texts": {},
        "trials": list(trials),
    }
    return {**plain, **changes}


def is_running(pid: int) -> bool:
    """False for a process that ended, also where nobody has collected it yet."""
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
        except OSError:
            return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return state.returncode == 0 and not state.stdout.strip().startswith("Z")


def pids_in(path: Path, count: int) -> list[int]:
    """`count` pids that a test's server wrote into `path`, one a line, once they are all there."""
    wait_until(lambda: path.exists() and len(path.read_text().split()) >= count, f"no {path.name}")
    return [int(word) for word in path.read_text().split()]
