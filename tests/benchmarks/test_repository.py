"""Commits are read from a real repository through a mirror."""

import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from orchestrator.benchmarks.refs import Refs, resolve_ref
from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.benchmarks.remotes import check_url
from orchestrator.benchmarks.repository import Repository
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import Personas, commit_files, git, make_project, make_repository
from tests.support.fetches import fetch_now

FILES = [{"a.txt": "one"}, {"a.txt": "two"}, {"a.txt": "three"}]


@pytest.fixture
def origin(tmp_path: Path) -> tuple[Path, list[str]]:
    folder = tmp_path / "origin"
    return folder, make_repository(folder, FILES)


def reader(folder: Path, tmp_path: Path) -> Repository:
    return Repository(Remote(url=str(folder), allow_local=True), tmp_path / "mirror.git")


def test_branches_tags_and_short_hashes_are_resolved(
    origin: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder, shas = origin
    git(folder, "tag", "v1", shas[0])
    repository = reader(folder, tmp_path)
    repository.fetch()
    assert repository.resolve("main") == shas[2]
    assert repository.resolve("v1") == shas[0]
    assert repository.resolve(shas[1][:8]) == shas[1]
    assert repository.resolve("main~1") == shas[1]


def test_history_is_listed_parents_first(origin: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, shas = origin
    repository = reader(folder, tmp_path)
    repository.fetch()
    history = repository.history("main", limit=2)
    assert [commit.sha for commit in history] == shas[1:]
    assert history[0].parents == (shas[0],)
    assert history[1].subject == "version 3"


def test_archives_of_a_commit_are_reproducible(
    origin: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder, shas = origin
    repository = reader(folder, tmp_path)
    repository.fetch()
    archive, again = BytesIO(), BytesIO()
    repository.archive(shas[1], archive)
    repository.archive(shas[1], again)
    assert archive.getvalue() == again.getvalue()
    archive.seek(0)
    with tarfile.open(fileobj=archive) as files:
        member = files.extractfile("a.txt")
        assert member is not None
        assert member.read() == b"two"


@pytest.mark.parametrize("ref", ["nowhere", "f" * 40, "--upload-pack=x", "a b", "", "-1"])
def test_an_unknown_commit_is_reported(
    origin: tuple[Path, list[str]], tmp_path: Path, ref: str
) -> None:
    with pytest.raises(InvalidRequestError, match="commit"):
        reader(origin[0], tmp_path).resolve(ref)


@pytest.mark.parametrize(
    "url", ["ext::sh -c id", "file:///etc", "/etc", "--upload-pack=x", "-x@h:p", "https://-x", ""]
)
def test_invalid_repository_addresses_are_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        check_url(url, allow_local=False)


def test_names_are_resolved_without_a_fetch(origin: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Pages resolve names: they never wait for a git server."""
    folder, shas = origin
    repository = reader(folder, tmp_path)
    with pytest.raises(InvalidRequestError, match="no commit, branch or tag main"):
        repository.resolve("main")
    repository.fetch()
    newer = commit_files(folder, {"a.txt": "four"}, 4)
    assert repository.resolve("main") == shas[2]
    with pytest.raises(InvalidRequestError):
        repository.resolve(newer)


def test_the_error_of_git_for_a_missing_repository_is_shown(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="not appear to be a git repository") as caught:
        reader(tmp_path / "nothing-here", tmp_path).fetch()
    assert "nothing-here" not in str(caught.value)


def test_no_message_has_the_url_of_the_repository(tmp_path: Path) -> None:
    """Its host is nobody's business outside the team."""
    url = "https://127.0.0.1:9/inner/project.git"
    remote = Remote(url=url, allow_local=False, allowed=["127.0.0.0/8"])
    repository = Repository(remote, tmp_path / "mirror.git")
    messages = []
    for attempt in (repository.fetch, lambda: repository.resolve("zzz")):
        with pytest.raises(InvalidRequestError) as caught:
            attempt()
        messages.append(str(caught.value))
    assert not [each for each in messages if "inner/project" in each]


@pytest.mark.parametrize(
    "url",
    ["https://bot:glpat-SECRET@h.example/x.git", "https://SECRET@h/x", "ssh://git:SECRET@h/x",
     "git:SECRET@h.example:x.git", "https//bot:SECRET@h/x"],
)  # fmt: skip
def test_an_address_with_a_secret_is_refused_and_the_secret_not_shown(url: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_url(url, allow_local=True)
    assert "SECRET" not in str(caught.value)
    assert "//" not in url or "https//" in url or "Repository access" in str(caught.value)


@pytest.mark.django_db
def test_commits_are_filed_in_order_along_the_branch(personas: Personas, tmp_path: Path) -> None:
    project, shas = make_project(personas.alice, tmp_path / "origin", FILES)
    places = dict(project.commits.values_list("sha", "position"))
    assert [places[sha] for sha in shas] == [0, 1, 2]
    newer = commit_files(tmp_path / "origin", {"a.txt": "four"}, 4)
    assert resolve_ref(project=project, ref="main").sha == shas[2]
    fetch_now(project)
    assert resolve_ref(project=project, ref="main").sha == newer
    assert project.commits.get(sha=newer).position == 3


@pytest.mark.django_db
def test_names_looked_up_together_are_consistent(personas: Personas, tmp_path: Path) -> None:
    project, shas = make_project(personas.alice, tmp_path / "origin", FILES)
    refs = Refs(project)
    assert refs.commit("main").sha == shas[2]
    newer = commit_files(tmp_path / "origin", {"a.txt": "four"}, 4)
    fetch_now(project)
    assert refs.commit("main~1").sha == shas[1]
    assert refs.commit("main").sha == shas[2]
    assert [Refs(project).commit(each).sha for each in ("main", "main~1")] == [newer, shas[2]]
