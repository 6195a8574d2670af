"""A measurement from a folder of this machine refuses what it cannot measure completely."""

import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.dispatch.here.rows import LocalRequest, build_rows
from orchestrator.dispatch.here.source import build_archive, list_lfs_files, pack_lfs_files
from orchestrator.runs.models import Until
from tests.support.factories import DEFINITION, git, make_repository
from tests.support.lfs import commit_lfs_files, store_objects
from tests.support.submodules import commit_submodules

MODEL = b"m" * 3000


def test_submodules_are_refused(tmp_path: Path) -> None:
    app = tmp_path / "app"
    (plain,) = make_repository(app, [{"main.txt": "main"}])
    assert build_archive(app, plain)
    linked = commit_submodules(app, {"vendor/lib": ("../lib", "1" * 40)})
    with pytest.raises(InvalidRequestError, match=r"submodules, such as vendor/lib"):
        build_archive(app, linked)


def test_files_of_lfs_are_those_that_git_lfs_has_fetched(tmp_path: Path) -> None:
    app = tmp_path / "app"
    make_repository(app, [{"main.txt": "main"}])
    sha = commit_lfs_files(app, {"data/model.bin": MODEL})
    git(app, "worktree", "add", "--quiet", str(tmp_path / "other"), sha)
    for folder in (app, tmp_path / "other"):
        with pytest.raises(InvalidRequestError, match=r"data/model\.bin\. Run `git lfs fetch"):
            list_lfs_files(folder, sha)
    store_objects(app / ".git", MODEL)
    for folder in (app, tmp_path / "other"):
        packed = BytesIO()
        pack_lfs_files(folder, list_lfs_files(folder, sha), packed)
        packed.seek(0)
        with tarfile.open(fileobj=packed, mode="r:") as archive:
            content = archive.extractfile("data/model.bin")
            assert content is not None
            assert content.read() == MODEL


def test_other_repositories_are_refused(tmp_path: Path) -> None:
    source = f"{DEFINITION}repositories: {{framework: {{project: framework, ref: main}}}}\n"
    with pytest.raises(InvalidRequestError) as caught:
        build_rows(LocalRequest(source=source, repository=tmp_path, shas=("1" * 40,)))
    assert caught.value.field == "repositories"


def test_contests_are_decided_only_in_pitwall(tmp_path: Path) -> None:
    wanted = LocalRequest(
        source=DEFINITION, repository=tmp_path, shas=("1" * 40,), until=Until.RANKED
    )
    with pytest.raises(InvalidRequestError, match="contests are decided only in Pitwall"):
        build_rows(wanted)
