"""The submodules of a commit are fetched by the fetch worker, within limits, without secrets."""

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks import access, submodules
from orchestrator.benchmarks.build_sources import load_build_source
from orchestrator.benchmarks.fetch_requests import load_fetch, request_fetch
from orchestrator.benchmarks.mirrors import measure_folder, open_pack_file
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.refs import FetchRunningError, get_mirror_path, open_repository
from orchestrator.core.errors import InvalidRequestError
from orchestrator.database.clock import read_database_time
from tests.support.factories import Personas, git, make_repository
from tests.support.fetches import fetch_now, read_source, run_fetches
from tests.support.git_servers import TOKEN, serving_git
from tests.support.http_servers import Got, serving
from tests.support.programs import program
from tests.support.sshd import SshServer, sshd
from tests.support.submodules import commit_submodules

__all__ = ["sshd"]

pytestmark = pytest.mark.django_db

ABSENT = "0123456789" * 4


@pytest.fixture
def app(tmp_path: Path, data_dir: Path, settings: Any) -> Path:
    """A repository next to which tests make libraries."""
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.0/8"]
    make_repository(tmp_path / "app", [{"main.txt": "main"}])
    return tmp_path / "app"


def make_app_project(personas: Personas, url: str | Path) -> Project:
    project = create_project(member=personas.alice, slug="app", name="", repository_url=str(url))
    fetch_now(project)
    return project


def read_problem(personas: Personas, app: Path, sha: str) -> str:
    project = make_app_project(personas, app)
    source = read_source(project, sha)
    assert not source.submodules
    # Only the commit has a problem.
    assert not load_fetch(project).error
    assert not read_source(project, git(app, "rev-list", "--max-parents=0", sha)).problem
    return source.problem


def list_archive(project: Project, sha: str, folder: Path) -> list[str]:
    with open_pack_file(folder) as file:
        open_repository(project).submodules.archive(sha, file)
        file.seek(0)
        listed = subprocess.run(["tar", "tz"], stdin=file, capture_output=True, check=True)
    return sorted(name for name in listed.stdout.decode().split() if not name.endswith("/"))


def test_submodules_and_theirs_are_fetched_at_the_recorded_commits(
    personas: Personas, app: Path, tmp_path: Path
) -> None:
    (deep,) = make_repository(tmp_path / "deep", [{"deep.txt": "deep"}])
    old, _ = make_repository(tmp_path / "lib", [{"lib.txt": "old"}, {"lib.txt": "new"}])
    git(tmp_path / "lib", "checkout", "-q", old)
    (tmp_path / "lib" / ".gitattributes").write_text("lib.txt export-ignore\n")
    git(tmp_path / "lib", "add", ".gitattributes")
    nested = commit_submodules(tmp_path / "lib", {"third/deep": ("../deep", deep)})
    git(tmp_path / "lib", "branch", "nested")
    sha = commit_submodules(app, {"vendor/lib": ("../lib", nested)})
    project = make_app_project(personas, app)
    source = read_source(project, sha)
    assert source.problem == ""
    assert source.submodules == [["vendor/lib", nested], ["vendor/lib/third/deep", deep]]
    files = list_archive(project, nested, tmp_path / "data")
    assert files == [".gitattributes", ".gitmodules", "lib.txt"]
    assert list_archive(project, deep, tmp_path / "data") == ["deep.txt"]
    # They count for the mirror, and a commit of a submodule is not one of the project.
    mirror = get_mirror_path(project)
    assert measure_folder(mirror / "pitwall-submodules") > 0
    assert open_repository(project).find(nested) is None
    assert load_fetch(project).mirror_bytes >= measure_folder(mirror / "pitwall-submodules")
    # They are fetched once, and again if the mirror was lost.
    before = load_fetch(project).started_at
    assert read_source(project, sha).submodules == source.submodules
    assert load_fetch(project).started_at == before
    mirror.rename(tmp_path / "lost")
    assert read_source(project, sha).submodules == source.submodules
    assert load_fetch(project).started_at != before


@pytest.mark.parametrize(
    "url",
    ["file:///etc", "ext::sh -c touch% {marker}", "--upload-pack=touch {marker}", "/etc",
     "ssh://-oProxyCommand=touch%20{marker}/x", "git://127.0.0.1/lib", "../../../../etc"],
)  # fmt: skip
def test_a_hostile_url_is_a_problem_of_its_commit(
    personas: Personas, app: Path, tmp_path: Path, url: str
) -> None:
    marker = tmp_path / "marker"
    sha = commit_submodules(app, {"lib": (url.format(marker=marker), ABSENT)})
    problem = read_problem(personas, app, sha)
    assert problem.startswith("the submodule lib cannot be used: its URL")
    assert "relative URL such as ../library.git" in problem or "leads out" in problem
    assert not marker.exists()


def test_a_submodule_in_the_internal_network_is_refused(
    personas: Personas, app: Path, settings: Any
) -> None:
    settings.ALLOWED_INTERNAL_NETWORKS = []
    requests: list[Got] = []

    def answer(got: Got) -> tuple[int, bytes, dict[str, str]]:
        requests.append(got)
        return 404, b"", {}

    with serving(answer) as url:
        sha = commit_submodules(app, {"lib": (f"{url}/lib.git", ABSENT)})
        problem = read_problem(personas, app, sha)
    assert problem.startswith("the submodule lib cannot be used")
    assert "127.0.0.1" in problem
    assert not requests


def test_a_submodule_over_ssh_of_another_server_is_refused(personas: Personas, app: Path) -> None:
    sha = commit_submodules(app, {"lib": ("git@127.0.0.1:lib.git", ABSENT)})
    assert "use an https URL in .gitmodules" in read_problem(personas, app, sha)


def test_a_missing_commit_names_the_submodule(
    personas: Personas, app: Path, tmp_path: Path
) -> None:
    make_repository(tmp_path / "lib", [{"lib.txt": "old"}])
    sha = commit_submodules(app, {"vendor/lib": ("../lib", ABSENT)})
    problem = read_problem(personas, app, sha)
    assert "the submodule vendor/lib cannot be used" in problem
    assert str(tmp_path) not in problem


def test_recursion_and_number_of_submodules_are_bounded(
    personas: Personas, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sha,) = make_repository(tmp_path / "lib", [{"lib.txt": "old"}])
    for number in range(submodules.MOST_LEVELS + 1):
        target = tmp_path / "lib" if number < submodules.MOST_LEVELS else app
        sha = commit_submodules(target, {"in": ("../lib", sha)}, number=number + 1)
    git(app, "branch", "deep")
    project = make_app_project(personas, app)
    problem = read_source(project, sha).problem
    assert "in/in/in/in/in/in cannot be used: it is inside 5 other submodules" in problem
    monkeypatch.setattr(submodules, "MOST_SUBMODULES", 3)
    assert "more than 3 submodules" in read_source(project, sha).problem


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ("[submodule", "not a valid file of git's configuration"),
        ('[submodule "x"]\n\tpath = elsewhere\n\turl = ../lib\n', "has no URL for the submodule"),
        (f"# {'x' * (300 << 10)}\n", "not a file of at most 256 KiB"),
    ],
)
def test_a_bad_gitmodules_is_a_problem_of_its_commit(
    personas: Personas, app: Path, listed: str, problem: str
) -> None:
    sha = commit_submodules(app, {"lib": ("../lib", ABSENT)}, listed=listed)
    assert problem in read_problem(personas, app, sha)


def test_a_problem_is_tried_again_by_the_next_job(
    personas: Personas, app: Path, tmp_path: Path
) -> None:
    (lib,) = make_repository(tmp_path / "elsewhere", [{"lib.txt": "old"}])
    sha = commit_submodules(app, {"lib": ("../lib", lib)})
    project = make_app_project(personas, app)
    commit, since = project.commits.get(sha=sha), read_database_time()
    assert read_source(project, sha).problem
    (tmp_path / "elsewhere").rename(tmp_path / "lib")
    # The job that saw the problem keeps it.
    assert load_build_source(project, commit, since=since).problem
    assert read_source(project, sha).problem == ""


def test_the_mirror_limit_includes_submodules(
    personas: Personas, app: Path, tmp_path: Path, settings: Any
) -> None:
    make_repository(tmp_path / "lib", [{"lib.txt": "old"}])
    (tmp_path / "lib" / "large.bin").write_bytes(os.urandom(3 << 20))
    git(tmp_path / "lib", "add", ".")
    git(tmp_path / "lib", "commit", "-qm", "large")
    large = git(tmp_path / "lib", "rev-parse", "HEAD")
    sha = commit_submodules(app, {"lib": ("../lib", large)})
    settings.GIT_MIRROR_LIMIT_MIB = 1
    project = make_app_project(personas, app)
    assert "PITWALL_GIT_MIRROR_LIMIT_MIB" in read_source(project, sha).problem


def test_the_token_is_sent_to_private_submodules_in_the_folder_of_the_project_only(
    personas: Personas, app: Path, tmp_path: Path
) -> None:
    served = tmp_path / "served"
    shas = {}
    for name in ("team/lib", "team/other", "public/lib", "stranger/lib"):
        (shas[name],) = make_repository(served / name, [{"name.txt": name}])
    app.rename(served / "team" / "app")
    app = served / "team" / "app"
    with serving_git(served) as (url, server), serving_git(served) as (elsewhere, stranger):
        links = {
            "lib": ("../lib", shas["team/lib"]),
            "other": (f"{url}/team/other", shas["team/other"]),
            "public": ("../../public/lib", shas["public/lib"]),
            "stranger": (f"{elsewhere}/stranger/lib", shas["stranger/lib"]),
        }
        sha = commit_submodules(app, links)
        more = {**links, "x": (f"{elsewhere}/team/lib", shas["team/lib"][::-1])}
        refused = commit_submodules(app, more, number=51)
        project = create_project(
            member=personas.alice, slug="app", name="", repository_url=f"{url}/team/app"
        )
        access.save_token(member=personas.alice, project=project, token=TOKEN)
        fetch_now(project)
        source = read_source(project, sha)
        assert source.problem == ""
        assert [path for path, _ in source.submodules] == ["lib", "other", "public", "stranger"]
        problem = read_source(project, refused).problem
        assert "the submodule x cannot be used" in problem
        assert TOKEN not in problem
    assert server.trusted == {"team"}
    assert not stranger.trusted


def test_a_deploy_key_opens_private_submodules_on_its_server(
    personas: Personas, app: Path, sshd: SshServer, tmp_path: Path
) -> None:
    program("sshd")  # The replacement for machines without it does not serve git.
    old, _ = make_repository(tmp_path / "lib", [{"lib.txt": "old"}, {"lib.txt": "new"}])
    sha = commit_submodules(app, {"lib": ("../lib", old)})
    url = f"ssh://{sshd.user}@{sshd.host}:{sshd.port}{app}"
    project = create_project(member=personas.alice, slug="app", name="", repository_url=url)
    row = access.generate_deploy_key(member=personas.alice, project=project)
    keys = tmp_path / "ssh-server" / "authorized_keys"
    keys.write_text(f"{row.public_key}\n")
    fetch_now(project)
    keys.write_text("")
    assert "cannot be used: git cannot read" in fetch_alone(project, sha)
    keys.write_text(f"{row.public_key}\n")
    source = read_source(project, sha)
    assert (source.submodules, source.problem) == ([["lib", old]], "")


def fetch_alone(project: Project, sha: str) -> str:
    """Fetch the submodules of a commit without a fetch of the project; return the problem."""
    try:
        open_repository(project).submodules.fetch(sha)
    except InvalidRequestError as error:
        return str(error)
    return ""


def test_a_request_after_the_read_of_a_fetch_is_not_lost(
    personas: Personas, app: Path, tmp_path: Path
) -> None:
    (lib,) = make_repository(tmp_path / "lib", [{"lib.txt": "old"}])
    sha = commit_submodules(app, {"lib": ("../lib", lib)})
    project = make_app_project(personas, app)
    commit = project.commits.get(sha=sha)
    before = read_database_time() - timedelta(hours=1)
    # The fetch of the project above is newer than the job, and knew nothing of the submodules.
    with pytest.raises(FetchRunningError):
        load_build_source(project, commit, since=before)
    request_fetch(project, since=before)
    run_fetches()
    assert load_build_source(project, commit, since=before).submodules == [["lib", lib]]
