"""The files that a proposal reads: few, small and plain ones, whatever a repository contains."""

from pathlib import Path

import pytest

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.proposals.proposal import propose_for_project
from orchestrator.benchmarks.proposals.source_files import (
    MOST_BYTES,
    MOST_FILE_BYTES,
    read_source_files,
)
from orchestrator.benchmarks.refs import open_repository, resolve_ref
from tests.support.factories import Personas, git, make_repository
from tests.support.fetches import fetch_now

pytestmark = pytest.mark.usefixtures("data_dir")


def _read(member: Member, folder: Path) -> tuple[Project, dict[str, str]]:
    project = create_project(
        member=member, slug="server", name="Server", repository_url=str(folder)
    )
    fetch_now(project)
    commit = resolve_ref(project=project, ref="main")
    return project, read_source_files(open_repository(project), commit.sha)


def test_the_known_files_and_those_of_package_json_are_read(
    personas: Personas, tmp_path: Path
) -> None:
    folder = tmp_path / "repository"
    package = '{"main": "./web.js", "scripts": {"start": "node start.mjs ../out.js"}}'
    make_repository(
        folder,
        [{"package.json": package, "web.js": "1", "start.mjs": "2", "out.js": "3", "LICENSE": "4"}],
    )
    project, files = _read(personas.alice, folder)
    assert files == {"package.json": package, "web.js": "1", "start.mjs": "2"}
    proposal = propose_for_project(project).proposal
    assert proposal is not None
    assert "node" in proposal.source


def test_a_hostile_repository_is_read_within_limits(personas: Personas, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    make_repository(folder, [{"app.py": "ok"}])
    (folder / "Procfile").symlink_to("/etc/passwd")
    for number in range(300):
        path = folder / "server.py" / f"{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("in a folder with the name of a file")
    (folder / "Dockerfile").write_text("#" * (MOST_FILE_BYTES + 1))
    (folder / "main.py").write_bytes(b"\xff\x00text")
    for name in ("run.py", "api.py", "wsgi.py", "asgi.py", "application.py", "src.py"):
        (folder / name).write_text("x" * MOST_FILE_BYTES)
    (folder / "src").mkdir()
    for name in ("main.py", "app.py", "main.rs", "index.js", "server.js"):
        (folder / "src" / name).write_text("y" * MOST_FILE_BYTES)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "hostile", at=600)

    project, files = _read(personas.alice, folder)
    assert files["app.py"] == "ok"
    assert files["main.py"] == "\ufffdtext"
    assert not {"Procfile", "Dockerfile", "src.py"} & files.keys()
    assert not any(path.startswith("server.py") for path in files)
    assert sum(map(len, files.values())) <= MOST_BYTES
    assert propose_for_project(project).proposal is not None


def test_the_files_at_exact_paths_are_listed(personas: Personas, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    make_repository(folder, [{"a.txt": "12", "b.txt": "3"}])
    project, _ = _read(personas.alice, folder)
    repository = open_repository(project)
    sha = repository.resolve("main")
    assert repository.list_files(sha, "a.txt", "missing", "*.txt") == {"a.txt": 2}
    assert repository.list_files(sha) == {}
