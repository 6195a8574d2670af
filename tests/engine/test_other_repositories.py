"""A run measures submodules and other repositories at their recorded commits."""

import hashlib
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.benchmarks.projects import create_project
from orchestrator.runs.models import Build, Run, Trial
from tests.support.engine import Engine, server
from tests.support.factories import (
    Personas,
    git,
    make_definition,
    make_project,
    make_repository,
    make_shared_host,
)
from tests.support.factories import make_run as run_of
from tests.support.fetches import fetch_now, fetching
from tests.support.submodules import commit_submodules

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: Answers with the words of a file of a submodule, and of one of the other repository.
SERVER = server(
    body="WORDS",
    start=(
        "import os\n"
        "words = ' '.join(open(path).read().strip() for path in ("
        "'vendor/lib/word.txt', 'built.txt', os.environ['WORD']))"
    ),
)["server.py"].replace("'WORDS'", "words")
DEFINITION = dedent(
    """\
    version: 1
    title: Words
    repositories:
      framework: {project: framework, ref: "{framework}"}
    subject:
      build: [[cp, "{framework_tree}/word.txt", built.txt]]
      env: {WORD: "{framework_tree}/word.txt"}
      start: ["{python}", server.py, --port, "{port}"]
      ready: {path: /hello, timeout_s: 10}
    load: {path: /hello, connections: 2, duration_s: 0.5, warmup_s: 0.1}
    matrix: {framework: [v1, main]}
    rounds: 1
    cooldown_s: 0
    """
)


def make_framework(team: Personas, folder: Path) -> list[str]:
    shas = make_repository(folder, [{"word.txt": "one"}, {"word.txt": "two"}])
    git(folder, "tag", "v1", shas[0])
    project = create_project(
        member=team.alice, slug="framework", name="Framework", repository_url=str(folder)
    )
    fetch_now(project)
    return shas


def collect_bodies(run: Run) -> dict[tuple[str, str], str]:
    """Return the SHA-256 of the answer by commit and value of the axis."""
    trials = Trial.objects.filter(job__run=run, state="measured")
    return {
        (each.variant.commit.sha, each.case.parameters["framework"]): each.provenance["checks"][0][
            "sha256"
        ]
        for each in trials.select_related("variant__commit", "case")
    }


def hash_answer(*words: str) -> str:
    return hashlib.sha256(" ".join(words).encode()).hexdigest()


def test_a_server_reads_its_submodule_and_the_other_repository(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    framework = make_framework(team, tmp_path / "framework")
    libs = make_repository(tmp_path / "lib", [{"word.txt": "old"}, {"word.txt": "new"}])
    origin = tmp_path / "origin"
    project, _ = make_project(team.alice, origin, [{"server.py": SERVER}])
    old, new = (
        commit_submodules(origin, {"vendor/lib": ("../lib", sha)}, number=number)
        for number, sha in enumerate(libs, 2)
    )
    lost = commit_submodules(origin, {"vendor/lib": ("file:///etc", libs[0])}, number=9)
    fetch_now(project)
    make_definition(team.alice, project, source=DEFINITION)
    make_shared_host(team.alice)
    with fetching():
        run = engine.finish(run_of(team.alice, [old, new, lost]))
    assert run.repositories == [
        {"name": "framework", "project": "framework", "ref": "v1", "sha": framework[0]},
        {"name": "framework", "project": "framework", "ref": "main", "sha": framework[1]},
    ]
    assert collect_bodies(run) == {
        (old, "v1"): hash_answer("old", "one", "one"),
        (old, "main"): hash_answer("old", "two", "two"),
        (new, "v1"): hash_answer("new", "one", "one"),
        (new, "main"): hash_answer("new", "two", "two"),
    }, run.message
    # The commit whose submodule is refused fails alone, with the reason.
    failed = Build.objects.filter(job__run=run, commit__sha=lost)
    assert {each.state for each in failed} == {"failed"}
    assert all("the submodule vendor/lib cannot be used: its URL" in one.message for one in failed)
    # The digests cover submodules and the other repository.
    built = Build.objects.filter(job__run=run, state="done")
    assert (
        len(set(built.values_list("digest"))) == len(set(built.values_list("source_digest"))) == 4
    )
    one = Trial.objects.filter(job__run=run, state="measured", case__parameters__framework="v1")
    assert one[0].provenance["repositories"] == {
        "framework": {
            "name": "framework", "project": "framework", "ref": "v1", "sha": framework[0],
        }
    }  # fmt: skip
