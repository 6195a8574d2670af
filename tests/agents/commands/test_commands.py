"""The verbs that do not run anything, and what they refuse."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agents.support import (
    SERVER,
    AgentHost,
    a_build,
    a_check,
    a_load,
    a_plan,
    a_ready,
    a_search,
    a_server,
    a_trial,
    an_install,
    limits,
    write_tar,
)

LONG_AGO = time.time() - 40 * 86_400


def test_an_unknown_step_is_reported(host: AgentHost) -> None:
    status = host.verb("status", "j1", "a1-r1")
    assert abs(status.pop("now") - time.time()) < 60
    nothing = {"alive": False, "offset": 0, "events": [], "started": False, "dropped": 0}
    assert status == {**nothing, "beat_age_s": None, "idle_s": None}
    assert host.verb("stop", "j1", "a1-r1") == {"stopped": False}


@pytest.mark.parametrize("name", ["..", ".hidden", "a/b", "", "a b", "ä", "a\n"])
@pytest.mark.parametrize("verb", ["start", "status", "stop"])
def test_invalid_path_components_are_refused(verb: str, name: str, host: AgentHost) -> None:
    assert host.verb(verb, name, "a1-r1")["error"]["code"] == "bad_argument"
    assert host.verb(verb, "j1", name)["error"]["code"] == "bad_argument"


def test_files_of_a_step_are_listed(host: AgentHost) -> None:
    present = host.verb("has", "sources/c0ffee.tar.gz", "tools/none/oha")["present"]
    assert present == {"sources/c0ffee.tar.gz": True, "tools/none/oha": False}


def test_a_build_log_is_read_from_an_offset(host: AgentHost) -> None:
    folder = host.send_plan(a_plan()).folder
    assert host.verb("log", "j1", "a1-r1", "c0ffee-r") == {"offset": 0, "text": ""}
    (folder / "build-c0ffee-r.log").write_bytes("größer".encode()[:3])
    assert host.verb("log", "j1", "a1-r1", "c0ffee-r") == {"offset": 2, "text": "gr"}
    (folder / "build-c0ffee-r.log").write_bytes("größer".encode() + b"\xff" + b"x" * 100_000)
    first = host.verb("log", "j1", "a1-r1", "c0ffee-r", "--offset", "2")
    assert first["text"].startswith("ößer\ufffdx")
    assert first["offset"] == 2 + 64 * 1024
    second = host.verb("log", "j1", "a1-r1", "c0ffee-r", "--offset", str(first["offset"]))
    assert first["text"] + second["text"] == "ößer\ufffd" + "x" * 100_000


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "tools/../../x"])
def test_paths_outside_of_the_work_directory_are_refused(path: str, host: AgentHost) -> None:
    assert host.verb("has", path)["error"]["code"] == "bad_argument"


TWO_HOSTS = {label: {"address": "127.0.0.1", "port": None} for label in "ab"}
BAD_PLANS: dict[str, tuple[dict[str, Any], str]] = {
    "schema": (a_plan(schema=1), "schema"),
    "missing": ({k: v for k, v in a_plan().items() if k != "silence_s"}, "silence_s"),
    "type": (a_plan(a_trial("t", server=a_server(argv="x"))), "trials[0].server.argv"),
    "id": (a_plan(a_trial("t", id="../t1")), "../t1"),
    "tree": (a_plan(a_trial("t", tree="../tree")), "../tree"),
    "source": (a_plan(builds=[a_build(source={"archive": "/etc/passwd"})]), "/etc/passwd"),
    "no source": (a_plan(builds=[a_build(source={})]), "builds[0].source"),
    "two sources": (
        a_plan(builds=[a_build(source={"archive": "a", "repository": "b"})]),
        "builds[0].source",
    ),
    "commit": (a_plan(builds=[a_build(source={"repository": "p"}, commit="main")]), "main"),
    "build": (a_plan(builds=[a_build(id="../b")]), "../b"),
    "two builds of a name": (a_plan(builds=[a_build(), a_build()]), "c0ffee-r"),
    "file of an install": (a_plan(builds=[an_install(files=["../x"])]), "../x"),
    "key of an install": (a_plan(builds=[an_install(key=1)]), "builds[0].install.key"),
    "path": (a_plan(builds=[a_build(path=["bin"])]), "builds[0].path"),
    "path of a trial": (a_plan(a_trial("t", path={"a": ["/a:/b"]})), "trials[0].path.a"),
    "host of a path": (a_plan(a_trial("t", path={"z": []})), "trials[0].path"),
    "label": (a_plan(a_trial("t", server=a_server(on="z"))), "trials[0].server.on"),
    "self": (a_plan(self="z"), "plan.self"),
    "secret": (a_plan(hosts=TWO_HOSTS), "secret"),
    "short secret": (a_plan(hosts=TWO_HOSTS, secret="5e"), "secret"),
    "port": (a_plan(hosts=TWO_HOSTS, secret="5e" * 32), "hosts.b.port"),
    "service": (a_plan(a_trial("t", services=[{}])), "services[0].name"),
    "limits": (
        a_plan(a_trial("t", server=a_server(limits=limits(memory_bytes="1G")))),
        "server.limits.memory_bytes",
    ),
    "loads": (a_plan(a_trial("t", loads=[a_load(kind="warmup")])), "measure"),
    "kind": (a_plan(a_trial("t", loads=[a_load(kind="spike")])), "loads[0].kind"),
    "steps of a search": (
        a_plan(a_trial("t", loads=[a_load(), a_load()], search=a_search(("success", ">", 0.9)))),
        "exactly one",
    ),
    "objective": (
        a_plan(a_trial("t", search=a_search(("success", "~", 0.9)))),
        "search.objective[0].op",
    ),
    "protocol": (a_plan(a_trial("t", ready=a_ready(protocol="h3"))), "ready.protocol"),
    "tls": (a_plan(a_trial("t", ready=a_ready(tls="no"))), "ready.tls"),
    "check": (a_plan(a_trial("t", checks=[a_check(body="?")])), "checks[0].body"),
    "response": (
        a_plan(a_trial("t", checks=[a_check(response={"size": 5})])),
        "checks[0].response",
    ),
    "header": (a_plan(a_trial("t", checks=[a_check(headers=[["a"]])])), "headers[0]"),
    "certificates": (a_plan(tls={"ca": "", "cert": None}), "plan.tls.key"),
    "file": (a_plan(a_trial("t", files={"../load.lua": ""})), "../load.lua"),
    "our own file": (a_plan(a_trial("t", files={"tool-2.json": ""})), "tool-2.json"),
}


@pytest.mark.parametrize(("plan", "place"), BAD_PLANS.values(), ids=BAD_PLANS)
def test_an_invalid_plan_is_refused_with_the_path(
    plan: dict[str, Any], place: str, host: AgentHost
) -> None:
    step = host.send_plan(plan)
    error = host.verb("start", step.job, step.name)["error"]
    assert error["code"] == "bad_plan"
    assert place in error["message"]
    assert step.read_status()["started"] is False


def test_a_missing_plan_is_reported(host: AgentHost) -> None:
    assert host.verb("start", "j1", "a1-r1")["error"]["code"] == "bad_plan"


def test_only_old_jobs_are_removed(host: AgentHost) -> None:
    write_tar(host.root / "sources/new.tar.gz", {"a": "b"})
    for name in ("jobs/old/a1-r1", "jobs/new/a1-r1", "builds/old-r/tree", "builds/new-r/tree"):
        (host.root / name).mkdir(parents=True)
    for name in ("jobs/old/a1-r1", "jobs/old", "builds/old-r", "sources/c0ffee.tar.gz"):
        os.utime(host.root / name, (LONG_AGO, LONG_AGO))
    removed = host.verb("prune", "--keep-days", "30")["removed"]
    assert sorted(removed) == ["builds/old-r", "jobs/old", "sources/c0ffee.tar.gz"]
    left = {
        path.name for kind in ("jobs", "builds", "sources") for path in list_entries(host, kind)
    }
    assert left == {"new", "new-r", "new.tar.gz"}


def list_entries(host: AgentHost, kind: str) -> list[Path]:
    return list((host.root / kind).iterdir())


def test_a_running_job_is_not_removed(host: AgentHost) -> None:
    step = host.start(a_plan(a_trial(host.send_tool(), cooldown_s=20.0)))
    step.await_event("trial_started")
    build = host.root / "builds/c0ffee-r"
    for path in (step.folder, step.folder.parent, build / ".done", build):
        os.utime(path, (LONG_AGO, LONG_AGO))
    host.verb("prune", "--keep-days", "1")
    assert build.exists()
    assert step.read_status()["alive"] is True


def test_facts_of_the_host_are_reported(host: AgentHost) -> None:
    facts = host.verb("facts")["facts"]
    assert facts["threads"] == os.cpu_count()
    assert host.verb("facts")["facts"]["static"] == facts["static"]
    unknown = {key for key, value in facts.items() if value is None}
    assert unknown <= set(facts["reasons"])
    assert json.dumps(facts)


def test_the_status_shows_that_the_supervisor_goes_on(host: AgentHost) -> None:
    host.send_source({"server.py": SERVER.format(extra="")})
    step = host.start(a_plan(a_trial(host.send_tool(), cooldown_s=20.0)))
    step.await_event("trial_done")
    assert 0 <= step.read_status()["beat_age_s"] < 60
    assert 0 <= step.read_status()["idle_s"] < 60
    # A supervisor that is stopped, as one whose disk hangs, does not.
    os.kill(step.pid, signal.SIGSTOP)
    (step.folder / "beat").write_text(f"{time.monotonic() - 3600}")
    status = step.read_status()
    assert status["alive"]
    assert 3600 <= status["beat_age_s"] < 3700
    began = time.monotonic()
    os.kill(step.pid, signal.SIGCONT)
    assert host.verb("stop", step.job, step.name)["stopped"]
    assert time.monotonic() - began < 20
