"""A folder of the commit in which the commands of a subject run."""

from pathlib import Path
from typing import Any

import pytest

from tests.agents.support import SERVER, AgentHost, Step, a_build, a_plan, a_server, a_trial

FOLDER = "services/api"
NOTE = "import os, sys; open(sys.argv[1], 'w').write(os.getcwd())"
#: Its server is in a folder; `shared.txt` is next to that.
FILES = {
    f"{FOLDER}/server.py": SERVER.format(extra="print(os.getcwd(), flush=True)"),
    f"{FOLDER}/requirements.txt": "hello==1\n",
    "shared.txt": "for all",
}


def measure(host: AgentHost, working_dir: str, *steps: list[str], **changes: Any) -> Step:
    """One trial of a build that notes the folder of its first step."""
    note = ["{python}", "-c", NOTE, "{tree}/built-in"]
    build = a_build(working_dir=working_dir, steps=[note, *steps], **changes)
    server = a_server(working_dir=working_dir)
    return host.run_round(a_plan(a_trial(host.send_tool(), server=server), builds=[build]))


def get_tree(host: AgentHost) -> Path:
    (tree,) = (host.root / "builds").glob("*/tree")
    return tree


def test_all_commands_run_in_the_working_dir(host: AgentHost) -> None:
    host.send_source(FILES)
    install = {
        "key": "k1",
        "files": [f"{FOLDER}/requirements.txt"],
        "steps": [["{python}", "-c", NOTE, "{installed}/in"]],
        "timeout_s": 20,
    }
    step = measure(host, FOLDER, install=install)
    assert step.only("trial_done"), step.events
    folder = str(get_tree(host) / FOLDER)
    assert (get_tree(host) / "built-in").read_text() == folder
    assert (step.folder / "trials/t1/server.log").read_text().split()[0] == folder
    (noted,) = (host.root / "installs").glob("*/installed/in")
    assert noted.read_text().endswith(f"/source/{FOLDER}")


@pytest.mark.parametrize("name", ["services/web", f"{FOLDER}/server.py"])
def test_a_missing_working_dir_fails_the_build(host: AgentHost, name: str) -> None:
    host.send_source(FILES)
    failed = measure(host, name).only("build_failed")
    assert failed["message"] == f"working_dir: the commit has no folder {name}"


def test_a_server_does_not_start_in_a_folder_outside_of_its_build(host: AgentHost) -> None:
    host.send_source({"app/server.py": SERVER.format(extra="")})
    swap = f"import os; os.rename('../app', '../old'); os.symlink({str(host.root)!r}, '../app')"
    step = measure(host, "app", ["{python}", "-c", swap])
    failed = step.only("trial_failed")
    assert failed["code"] == "server_did_not_start"
    assert failed["message"] == "working_dir: the commit has no folder app"


@pytest.mark.parametrize("name", ["/etc", "../other", "a//b", "."])
def test_a_plan_with_another_kind_of_path_is_refused(host: AgentHost, name: str) -> None:
    plan = a_plan(a_trial(host.send_tool()), builds=[a_build(working_dir=name)])
    step = host.send_plan(plan)
    done = host.run("start", step.job, step.name)
    assert done.returncode != 0
    assert "plan.builds[0].working_dir: expected a folder of the commit, or null" in done.stdout
