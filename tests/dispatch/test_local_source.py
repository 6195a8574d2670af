"""A measurement from a folder of this machine refuses what it cannot measure completely."""

from pathlib import Path

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.dispatch.here.rows import LocalRequest, build_rows
from orchestrator.dispatch.here.source import build_archive
from tests.support.factories import DEFINITION, commit_files, make_repository
from tests.support.submodules import commit_submodules

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 12345\n"


def test_submodules_and_pointers_are_refused(tmp_path: Path) -> None:
    app = tmp_path / "app"
    (plain,) = make_repository(app, [{"main.txt": "main"}])
    assert build_archive(app, plain)
    pointed = commit_files(app, {"model.bin": POINTER}, 2)
    with pytest.raises(InvalidRequestError, match=r"files of Git LFS.*model\.bin"):
        build_archive(app, pointed)
    commit_files(app, {"model.bin": "x"}, 3)
    linked = commit_submodules(app, {"vendor/lib": ("../lib", "1" * 40)})
    with pytest.raises(InvalidRequestError, match=r"submodules, such as vendor/lib"):
        build_archive(app, linked)


def test_other_repositories_are_refused(tmp_path: Path) -> None:
    source = f"{DEFINITION}repositories: {{framework: {{project: framework, ref: main}}}}\n"
    with pytest.raises(InvalidRequestError) as caught:
        build_rows(LocalRequest(source=source, repository=tmp_path, shas=("1" * 40,)))
    assert caught.value.field == "repositories"
