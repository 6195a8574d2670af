"""The recipes of docs/ci as a CI carries them out: a passing and a failing build, measured."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.accounts.services import create_token
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.services import import_definition
from orchestrator.runs.models import Run
from tests.support.engine import ROOT, Engine
from tests.support.factories import Personas, make_shared_host
from tests.support.fetches import fetch_now
from tests.support.programs import program

pytestmark = [pytest.mark.engine, pytest.mark.slow]

CI = ROOT / "docs" / "ci"
NEEDED = ("bash", "curl", "git", "python3")
#: As GitHub starts `shell: bash`; GitLab's shell stops at the first error in the same way.
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
SHORTER = {"duration_s: 2": "duration_s: 0.6", "warmup_s: 0.5": "warmup_s: 0.2"}


@dataclass(slots=True, kw_only=True)
class Machine:
    """A machine of a CI: nothing of ours in its environment, and a home that is empty."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def bash(self, script: str, where: Path, **more: str) -> subprocess.CompletedProcess[str]:
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        who = {
            f"GIT_{role}_{part}": text
            for role in ("AUTHOR", "COMMITTER")
            for part, text in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
        }
        plain = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C"}
        return subprocess.run(
            [*BASH, "-c", script], cwd=where, text=True, capture_output=True, timeout=120,
            env={**plain, **who, **self.variables, **more}, check=False,
        )  # fmt: skip

    def checkout(self, origin: Path, branch: str) -> Path:
        """All of the history, as `fetch-depth: 0` gets it, with a detached head."""
        tree = self.folder / branch
        done = self.bash(
            f"git clone --quiet {origin} {tree} && cd {tree} && "
            f"git checkout --quiet --detach origin/{branch} && git branch --quiet -D main",
            self.folder,
        )
        assert done.returncode == 0, done.stderr
        return tree


def list_scripts(document: Path) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


def test_the_recipes_pass_and_fail_builds(
    engine: Engine, team: Personas, live_server: Any, settings: Any, tmp_path: Path
) -> None:
    for name in NEEDED:
        program(name)
    settings.ALLOW_LOCAL_REPOSITORIES = True
    settings.BASE_URL = live_server.url
    token = create_token(member=team.alice, name="CI").secret
    origin = tmp_path / "origin.git"
    known = {"PITWALL_URL": live_server.url, "PITWALL_TOKEN": token}
    builds = {"harmless": 0, "slower": 1}

    follow_shell(Machine(folder=tmp_path / "shell", variables=known), origin, team)
    assert Run.objects.count() == len(builds)
    for branch, status in builds.items():
        for recipe in (github, gitlab):
            machine = Machine(folder=tmp_path / f"{recipe.__name__}-{branch}")
            machine.folder.mkdir()
            done = recipe(machine, machine.checkout(origin, branch), branch, known)
            assert done.returncode == status, (recipe.__name__, branch, done)
            assert ("Requests per second regressed" in done.stderr) == bool(status)
            assert token not in done.stdout + done.stderr
    # The commits are those of before: nobody measured them again.
    assert Run.objects.count() == len(builds)


def follow_shell(machine: Machine, origin: Path, team: Personas) -> None:
    """docs/ci/shell.md from its first line to the first red build."""
    begin, variables, green, red = list_scripts(CI / "shell.md")
    machine.folder.mkdir()
    for usual, short in SHORTER.items():
        assert usual in begin
        begin = begin.replace(usual, short)
    push = f"git init --quiet --bare --initial-branch=main {origin}; git remote add origin {origin}"
    done = machine.bash(f"{begin}\n{push}; git push --quiet -u origin main", machine.folder)
    assert done.returncode == 0, done.stderr
    project = create_project(
        member=team.alice, slug="hello", name="Hello", repository_url=str(origin)
    )
    fetch_now(project)
    import_definition(member=team.alice, project=project, path=".pitwall.yaml", slug="hello")
    make_shared_host(team.alice, "lab-1")

    given = {**machine.variables, "BENCHMARK": "hello", "HOSTS": "lab-1"}
    assert set(re.findall(r"^export (\w+)=", variables, re.MULTILINE)) == set(given)
    tree = machine.folder / "hello-benchmark"
    passed = machine.bash(green, tree, **given)
    assert passed.returncode == 0, f"{passed.stdout}\n{passed.stderr}"
    assert "FAILED" not in passed.stderr
    assert "Requests per second" in passed.stdout
    failed = machine.bash(red, tree, **given)
    assert failed.returncode == 1, f"{failed.stdout}\n{failed.stderr}"
    assert "is a regression" in failed.stdout
    assert "FAILED: default on lab-1: Requests per second regressed, −" in failed.stderr


def github(
    machine: Machine, tree: Path, branch: str, known: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """The steps of the action, with the inputs of the workflow, until one of them fails."""
    action = yaml.safe_load((CI / "github" / "action.yml").read_text())
    # In YAML `on` is a word for true.
    (job,) = yaml.safe_load((CI / "github" / "workflow.yml").read_text())["jobs"].values()
    used = job["steps"][-1]["with"]
    sha = machine.bash("git rev-parse HEAD", tree).stdout.strip()
    context = {
        "github.base_ref || github.event.repository.default_branch": "main",
        "github.event.pull_request.head.sha || github.sha": sha,
        "secrets.PITWALL_TOKEN": known["PITWALL_TOKEN"],
    }
    for name, spec in action["inputs"].items():
        context[f"inputs.{name}"] = evaluated(str(used.get(name, spec.get("default", ""))), context)
        assert context[f"inputs.{name}"] or not spec.get("required")
    context["inputs.url"] = known["PITWALL_URL"]
    files = {name: machine.folder / name for name in ("output", "summary.md")}
    runner = {"RUNNER_TEMP": str(machine.folder), "GITHUB_OUTPUT": str(files["output"]),
              "GITHUB_STEP_SUMMARY": str(files["summary.md"])}  # fmt: skip
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"], "what somebody wrote would become a part of the script"
        own = {key: evaluated(text, context) for key, text in step.get("env", {}).items()}
        done = machine.bash(step["run"], tree, **runner, **own)
        if done.returncode:
            break
        if "id" in step:
            output = dict(line.split("=", 1) for line in files["output"].read_text().splitlines())
            context |= {f"steps.{step['id']}.outputs.{key}": text for key, text in output.items()}
    assert "against" in files["summary.md"].read_text()
    return done


def gitlab(
    machine: Machine, tree: Path, branch: str, known: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """The script of the template as one shell runs it, in a pipeline of a merge request."""
    template = yaml.safe_load((CI / "gitlab" / "pitwall.yml").read_text())[".pitwall"]
    job = yaml.safe_load((CI / "gitlab" / "gitlab-ci.yml").read_text())["benchmark"]
    assert job["extends"] == ".pitwall"
    sha = machine.bash("git rev-parse HEAD", tree).stdout.strip()
    predefined = {
        "CI_JOB_ID": f"{os.getpid()}-{branch}",
        "CI_DEFAULT_BRANCH": "main",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": sha,
        "CI_COMMIT_SHA": "0" * 40,
    }
    given = {**template["variables"], **job["variables"], **predefined, **known}
    done = machine.bash("\n".join(template["script"]), tree, **given)
    assert "against" in (tree / template["artifacts"]["paths"][0]).read_text()
    return done


def evaluated(text: str, context: dict[str, str]) -> str:
    """Expressions of a workflow, of which the context has the values; KeyError for any other."""
    return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: context[found[1]], text)
