"""Secrets reach the processes of a round, and nothing that the agent leaves on the host."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.agents.support import (
    AgentHost,
    a_build,
    a_check,
    a_load,
    a_plan,
    a_ready,
    a_server,
    a_tool,
    a_trial,
    is_running,
)
from tests.support.waiting import wait_until

TOKEN = "t0ken-of-the-application"
KEY = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7\n-----END KEY-----\n"
SECRETS = {"APP_TOKEN": TOKEN, "APP_KEY": KEY}
ENV = {"TOKEN": {"secret": "APP_TOKEN"}, "KEY": {"secret": "APP_KEY"}, "PLAIN": "in the open"}

#: Prints its secrets in two writes and line by line, and answers with one of them.
TELLING = """
import http.server, os, sys, time
token, key = os.environ["TOKEN"], os.environ["KEY"]
print("says", os.environ["PLAIN"], flush=True)
for part in (token[:7], token[7:] + "\\n"):
    os.write(1, part.encode())
    time.sleep(0.05)
for line in key.splitlines():
    print("app |", line, file=sys.stderr)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"Hello, {token}!".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
#: Instead of a load tool: it has a secret of its own, and prints it.
SCRIPT = """
import os, sys
print("script with", os.environ["TOKEN"], file=sys.stderr)
print('{"type": "error", "class": "told", "text": "%s"}' % os.environ["TOKEN"])
print('{"type": "request", "latency_us": 12.0, "ok": true}')
print('{"type": "done"}')
"""
DONE = """
print('{"type": "request", "latency_us": 1.0, "ok": true}')
print('{"type": "done"}')
"""
PRINTS = ["{python}", "-c", "import os; print('built with', os.environ['TOKEN'], flush=True)"]


def list_places(root: Path) -> list[str]:
    """Return the files with a secret in them."""
    values = [TOKEN.encode(), *(line.encode() for line in KEY.splitlines())]
    found = []
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names):
            with contextlib.suppress(OSError):  # it was removed in between
                content = path.read_bytes()
                found += [str(path) for value in values if value in content]
    return found


@contextmanager
def watched(root: Path) -> Iterator[set[str]]:
    """Yield the files with a secret, and the command lines, during the block."""
    seen: set[str] = set()
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.02):
            seen.update(list_places(root))
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    command = path.read_bytes()
                except OSError:
                    continue
                seen.update([str(path)] if TOKEN.encode() in command else [])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        stop.set()
        watcher.join()


def telling_plan(host: AgentHost, **changes: Any) -> dict[str, Any]:
    host.send_source({"server.py": TELLING, "script.py": SCRIPT})
    wrong = a_trial(
        host.send_tool(), id="t2", server=a_server(env=ENV),
        checks=[a_check(response={"text": "Hello!"})],
    )  # fmt: skip
    script = a_trial(
        "", id="t1", server=a_server(env=ENV), checks=[a_check(response=None)],
        tool=a_tool(host.python, name="script", reader="script"),
        loads=[a_load("{tool}", "{tree}/script.py", env={"TOKEN": {"secret": "APP_TOKEN"}})],
        ready=a_ready(),
    )  # fmt: skip
    return a_plan(script, wrong, builds=[a_build(steps=[PRINTS], env=ENV)], **changes)


def test_secrets_reach_processes_and_no_file_log_or_command_line(host: AgentHost) -> None:
    with watched(host.root) as seen:
        step = host.run_round(telling_plan(host), SECRETS)
    assert seen == set()
    assert list_places(host.root) == []
    log = (step.folder / "trials/t1/server.log").read_text()
    assert "says in the open\n***\n" in log
    assert log.count("app | ***\n") == 3
    (build,) = step.folder.glob("build-*.log")
    assert build.read_text().endswith("built with ***\n")
    assert (step.folder / "trials/t1/tool.stderr").read_text() == "script with ***\n"
    rows = step.file("t1", "rows.json")
    assert rows["error_texts"] == {"told": ["***"]}
    assert rows["all"]["n"] == 1
    # The server answered with the value: it got it whole.
    (checked, _) = step.file("t1", "result.json")["checks"]
    assert checked["length"] == len(f"Hello, {TOKEN}!")
    failed = step.only("trial_failed")
    assert (failed["trial"], failed["code"]) == ("t2", "wrong_answer")
    assert "body 'Hello, ***!' instead of 'Hello!'" in failed["message"]
    assert TOKEN not in str(step.events)


def test_a_step_without_the_values_does_not_start(host: AgentHost) -> None:
    plan = telling_plan(host)
    host.send_plan(plan)
    answer = host.verb("start", "j1", "a1-r1", stdin='{"APP_TOKEN": "t0ken-of-the-application"}')
    assert answer["error"]["message"] == "the input lacks the values of these secrets: APP_KEY"
    broken = host.verb("start", "j1", "a1-r1", stdin=f'{{"APP_TOKEN": {TOKEN}}}')
    assert TOKEN not in str(broken)
    assert broken["error"]["code"] == "bad_argument"
    # It is still possible to start it, as after a lost connection.
    started = host.verb("start", "j1", "a1-r1", stdin=json.dumps(SECRETS))
    assert started["pid"] > 0


def test_much_output_is_redacted_whole(host: AgentHost) -> None:
    count = 200_000
    program = f"import os, sys; sys.stdout.write((os.environ['TOKEN'] + '\\n') * {count})"
    build = a_build(steps=[["{python}", "-c", program]], env=ENV)
    trial = a_trial(host.send_tool())
    step = host.run_round(a_plan(trial, builds=[build]), SECRETS)
    assert step.named("trial_done"), step.events
    (log,) = step.folder.glob("build-*.log")
    lines = log.read_text().splitlines()
    assert lines[1:] == ["***"] * count


def test_a_killed_supervisor_leaves_no_helper_and_a_new_one_gets_the_values_again(
    host: AgentHost,
) -> None:
    host.send_source({"server.py": TELLING})
    slow = "import time; time.sleep(300)"
    trial = a_trial(
        "", server=a_server(env=ENV), checks=[a_check(response=None)],
        tool=a_tool(host.python, name="script", reader="script"),
        loads=[a_load("{tool}", "-c", slow, env=ENV, wall_limit_s=300.0)],
    )  # fmt: skip
    step = host.start(a_plan(trial), SECRETS)
    wait_until(lambda: len(list_children(step.pid)) >= 5, "no tool with its helpers")
    children = list_children(step.pid)
    os.kill(step.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, children)), "helpers outlive their supervisor")
    quick = {**trial, "id": "t2", "loads": [a_load("{tool}", "-c", DONE)]}
    again = host.run_round(a_plan(quick, step="a2-r1"), SECRETS)
    assert again.named("trial_done"), again.events
    assert list_places(host.root) == []


def list_children(pid: int) -> list[int]:
    """Return the children of a supervisor: here two processes, and helpers of three files."""
    done = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in done.stdout.split()]
