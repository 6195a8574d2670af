"""Measured code runs as a user of its own where a host names one, and gets at nothing else."""

import json
import os
import pwd
import resource
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.platform.limits import FILE_BYTES, OPEN_FILES, PROCESSES
from tests.agents.support import (
    SERVER,
    AgentHost,
    Step,
    a_build,
    a_load,
    a_plan,
    a_server,
    a_step,
    a_tool,
    a_trial,
    an_install,
    is_running,
    pids_in,
)
from tests.support.malicious_server import prying
from tests.support.other_user import NOBODY, needs_root, public_folder, public_python
from tests.support.waiting import wait_until

pytestmark = needs_root

WHO = pwd.getpwnam(NOBODY)
BEFORE = "builds/0ther-r"


@pytest.fixture
def host() -> Iterator[AgentHost]:
    with public_folder() as folder:
        host = AgentHost(folder / "work", public_python())
        host.send_source({"server.py": SERVER.format(extra="")}, "0ther")
        yield host
        host.stop_all()


def run(host: AgentHost, *trials: dict[str, Any], **changes: Any) -> Step:
    return host.run_round(a_plan(*trials, **{"run_as": NOBODY, **changes}))


def measured_before(host: AgentHost) -> None:
    """Another job, of another commit, by the same user."""
    source = {"archive": "sources/0ther.tar.gz"}
    build = a_build(id="0ther-r", commit="0ther", tree=BEFORE, source=source)
    trial = a_trial(host.send_tool(), tree=BEFORE, commit="0ther")
    assert run(host, trial, builds=[build], job="before").only("trial_done")


def test_measured_code_reaches_only_its_tree_and_is_measured(
    host: AgentHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    measured_before(host)
    code = prying(program=host.program.name, other=BEFORE)
    host.send_source({"server.py": SERVER.format(extra=code)})
    step = run(host, a_trial(host.send_tool()))
    assert step.only("trial_done")
    tree = host.root / "builds/c0ffee-r/tree"
    report = json.loads((tree / "found.json").read_text())
    assert {what for what, error in report["tried"].items() if error != "PermissionError"} == set()
    assert report["ids"] == [*[WHO.pw_uid] * 3, *[WHO.pw_gid] * 4]
    assert (report["gains"], report["rights"]) == (1, 0)
    assert report["limits"] == [0, FILE_BYTES, PROCESSES]
    assert report["files"] == min(OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    environment = report["environment"]
    assert "SECRET" not in environment
    assert environment["HOME"] == str(tree.parent / "home")
    assert environment["TMPDIR"] == str(host.root / "scratch")
    assert step.file("t1", "result.json")["limits"]["server"]["user"] == NOBODY
    assert step.file("t1", "result.json")["limits"]["tool"]["user"] is None
    nothing_is_left(host, tree)


def nothing_is_left(host: AgentHost, tree: Path) -> None:
    (daemon,) = pids_in(tree / "pids", 1)
    wait_until(lambda: not is_running(daemon), "what it started lives on")
    assert not (host.root / "scratch").exists()
    for kind in ("builds", "installs"):
        for folder in (host.root / kind).iterdir():
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700


#: Runs as the user of the first argument, and can access the data of its own commit only.
PREPARING = """
import os, sys
assert os.getuid() == int(sys.argv[1])
for name in ("c0ffee-r", "0ther-r"):
    path = "{commit_data}/../../j1.commit-" + name + "/content"
    assert os.access(path, os.R_OK) == (name in "{commit_data}"), path
assert not os.access("{commit_data}/../..", os.R_OK)
open("{commit_data}/own", "x").close()
open("{job_data}/x", "a").write(open("{files}/a.txt").read())
"""


def test_prepare_steps_run_as_the_user_and_their_data_are_closed_afterwards(
    host: AgentHost,
) -> None:
    """Two commits share the data of the job, and see nothing of the other's."""
    step = a_step(PREPARING, each="commit")
    step["argv"].append(str(WHO.pw_uid))
    of_job = a_step("pass", each="job")
    texts = {"h": "text"}
    trial = a_trial(host.send_tool(), prepare=[of_job, step], files={"files/a.txt": "h"})
    host.send_source({"server.py": SERVER.format(extra="")})
    second = a_build(id="0ther-r", commit="0ther", tree=BEFORE)
    second["source"] = {"archive": "sources/0ther.tar.gz"}
    trials = [trial, {**trial, "id": "t2", "tree": BEFORE, "commit": "0ther"}]
    ended = run(host, *trials, builds=[a_build(), second], texts=texts)
    assert len(ended.named("trial_done")) == 2, ended.events[-2]
    assert (host.root / "data/j1/content/x").read_text() == "texttext"
    for folder in (host.root / "data").iterdir():
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.stat().st_uid == os.getuid()
    assert not (host.root / "scratch").exists()
    # The data of another user are not used.
    again = run(host, {**trial, "id": "t3"}, texts=texts, run_as=None, step="a1-r2")
    assert again.only("trial_failed")["code"] == "prepare_failed"
    assert (host.root / "data/j1/content").stat().st_uid == os.getuid()


def test_builds_and_installs_belong_to_the_user_and_become_read_only(
    host: AgentHost,
) -> None:
    host.send_source({"server.py": SERVER.format(extra="")})
    say = "import os; f = open({where!r}, {how!r}); f.write(str(os.getuid())); f.close()"
    build = an_install(
        steps=[["{python}", "-c", say.format(where="{installed}/who", how="x")]],
    )
    build["steps"] = [
        ["{python}", "-c", say.format(where="who", how="x")],
        ["{python}", "-c", "assert open('{installed}/who').read()"],
        ["{python}", "-c", say.format(where="{installed}/who", how="a")],
    ]
    step = run(host, builds=[build])
    assert "PermissionError" in step.only("build_failed")["output"]
    who = str(WHO.pw_uid)
    assert (host.root / "builds/c0ffee-r/tree/who").read_text() == who
    (installed,) = (host.root / "installs").glob("*/installed/who")
    assert (installed.read_text(), installed.stat().st_uid) == (who, os.getuid())


def test_a_tree_of_another_user_is_built_again(host: AgentHost) -> None:
    host.send_source({"server.py": SERVER.format(extra="")})
    cached = [
        run(host, step=f"a1-r{number}", run_as=who).only("build_done")["cached"]
        for number, who in enumerate((None, NOBODY, NOBODY, None))
    ]
    assert cached == [False, False, True, False]


SCRIPT = """
import json, os, sys
is_scratch = os.getcwd() == sys.argv[1] == os.environ["TMPDIR"]
for line in (
    {"type": "request", "latency_us": 5, "ok": True, "status": 200},
    {"type": "reading", "metric": "script.uid", "value": os.getuid()},
    {"type": "reading", "metric": "script.is_scratch", "value": int(is_scratch)},
    {"type": "done"},
):
    print(json.dumps(line))
"""
KEYS = "open('keys', 'w').write(' '.join(open(path).read() for path in sys.argv[2:]))"


def test_a_script_runs_as_the_user_and_a_server_can_read_the_keys_of_the_job(
    host: AgentHost,
) -> None:
    host.send_source({"server.py": SERVER.format(extra=KEYS), "client.py": SCRIPT})
    server = a_server(argv=["{python}", "server.py", "{port}", "{ca}", "{cert}", "{key}"])
    tool = a_tool(host.python, name="script", reader="script")
    load = a_load("{python}", "{tree}/client.py", "{trial_dir}")
    trial = a_trial(host.python, server=server, tool=tool, loads=[load])
    step = run(host, trial, tls={"ca": "a", "cert": "b", "key": "c"})
    assert step.only("trial_done")
    metrics = step.file("t1", "rows.json")["tool_metrics"]
    assert metrics == {"script.uid": WHO.pw_uid, "script.is_scratch": 1}
    assert (host.root / "builds/c0ffee-r/tree/keys").read_text() == "a b c"


@pytest.mark.parametrize(
    ("who", "words"),
    [("nobody-is-called-so", "no such user; create it"), ("root", "is root; name a user")],
)
def test_nothing_starts_if_the_agent_cannot_become_the_user(
    host: AgentHost, who: str, words: str
) -> None:
    step = host.send_plan(a_plan(a_trial(host.send_tool()), run_as=who))
    answer = host.verb("start", step.job, step.name)
    assert f"cannot run as {who} on this host" in answer["error"]["message"]
    assert words in answer["error"]["message"]
    assert host.verb("check-user", who) == answer
    assert not step.read_status()["started"]
    assert list((host.root / "builds").iterdir()) == []


def test_folders_that_the_user_cannot_enter_or_could_change_are_reported(host: AgentHost) -> None:
    assert host.verb("check-user", NOBODY)["user"] == {
        "name": NOBODY, "uid": WHO.pw_uid, "gid": WHO.pw_gid,
    }  # fmt: skip
    above = host.root.parent
    above.chmod(0o700)
    assert f"cannot enter {above}" in host.verb("check-user", NOBODY)["error"]["message"]
    above.chmod(0o777)
    assert f"it may write {above}" in host.verb("check-user", NOBODY)["error"]["message"]
    above.chmod(0o711)
    os.chown(host.root / "tools", WHO.pw_uid, -1)
    assert "/tools" in host.verb("check-user", NOBODY)["error"]["message"]


def test_only_root_can_start_programs_as_another_user(host: AgentHost) -> None:
    """Asked by a login that is not root."""
    for path in (host.program.parent, host.program, host.root):
        path.chmod(0o755)
    message = host.verb("check-user", "daemon", user=WHO.pw_uid)["error"]["message"]
    assert "only root can start programs as another user" in message
    assert f"logs in as {NOBODY}" in message
