"""A build has the files of its commit, of the submodules, and of other repositories."""

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.agents.origin import Origin, git_build
from tests.agents.support import (
    SERVER,
    AgentHost,
    Step,
    a_build,
    a_plan,
    a_server,
    a_trial,
    write_tar,
)

LIB, DEEP, FRAMEWORK = "1" * 40, "2" * 40, "3" * 40
MODULES = [
    {"path": "vendor/lib", "archive": f"sources/{LIB}.tar.gz"},
    {"path": "vendor/lib/deep", "archive": f"sources/{DEEP}.tar.gz"},
]
SHOW = "import sys; print(*(open(name).read() for name in sys.argv[1:]))"


@pytest.fixture
def origin(tmp_path: Path, host: AgentHost) -> Origin:
    """A repository; its submodules are on the host."""
    host.send_source({"lib.txt": "of lib"}, LIB)
    host.send_source({"deep.txt": "of deep"}, DEEP)
    return Origin(tmp_path / "origin")


def commit_link(origin: Origin, host: AgentHost, **files: str) -> str:
    """Commit a submodule at `vendor/lib`, and send the commit."""
    for name, text in files.items():
        (origin.folder / name.replace("_", ".")).write_text(text)
    origin.git("add", "--all")
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{LIB},vendor/lib")
    origin.git("commit", "--quiet", "--message", "Add lib")
    commit = origin.git("rev-parse", "HEAD")
    origin.git("update-ref", f"refs/pitwall/{commit}", commit)
    origin.send(host, commit)
    host.verb("take-bundle", "p1", "b1")
    return commit


def with_submodules(build: dict[str, Any], modules: list[dict[str, str]]) -> dict[str, Any]:
    return {**build, "source": {**build["source"], "submodules": modules}}


def build_only(host: AgentHost, build: dict[str, Any], step: str = "a1-r1") -> Step:
    return host.run_round(a_plan(builds=[build], step=step))


def test_submodules_are_in_their_folders_and_git_sees_a_clean_tree(
    host: AgentHost, origin: Origin
) -> None:
    commit = commit_link(origin, host, a="1")
    show = ["{python}", "-c", SHOW, "vendor/lib/lib.txt", "vendor/lib/deep/deep.txt"]
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
    build = with_submodules(git_build(commit, steps=[show, describe]), MODULES)
    step = build_only(host, build)
    first = step.only("build_done")["digests"]
    log = host.verb("log", step.job, step.name, build["id"])["text"]
    assert "of lib of deep" in log
    assert log.splitlines()[-1] == commit
    # Other content of a submodule is another build.
    host.send_source({"deep.txt": "changed"}, DEEP)
    (host.root / build["tree"] / ".done").unlink()
    second = build_only(host, build, "a1-r2").only("build_done")["digests"]
    assert first["source"] != second["source"]
    assert first["build"] != second["build"]


def test_an_archive_has_submodules_too(host: AgentHost, origin: Origin) -> None:
    show = ["{python}", "-c", SHOW, "vendor/lib/lib.txt", "vendor/lib/deep/deep.txt"]
    build = with_submodules(a_build(steps=[show]), MODULES)
    step = build_only(host, build)
    assert step.only("build_done"), step.events
    assert "of lib of deep" in host.verb("log", step.job, step.name, build["id"])["text"]


def test_a_problem_of_the_source_fails_the_build(host: AgentHost) -> None:
    failed = build_only(host, a_build(source={"problem": "the submodule x is lost"}))
    assert failed.only("build_failed")["message"] == "the submodule x is lost"
    other = {"framework": {"commit": FRAMEWORK, "source": {"problem": "no such framework"}}}
    failed = build_only(host, a_build(repositories=other), "a1-r2")
    assert failed.only("build_failed")["message"] == "no such framework"


def test_a_submodule_behind_a_link_is_refused(
    host: AgentHost, origin: Origin, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (origin.folder / "away").symlink_to(outside)
    commit = origin.commit(a="1")
    origin.send(host, commit)
    host.verb("take-bundle", "p1", "b1")
    module = {"path": "away/lib", "archive": f"sources/{LIB}.tar.gz"}
    step = build_only(host, with_submodules(git_build(commit), [module]))
    assert "a link of the commit is on the way" in step.only("build_failed")["message"]
    assert list(outside.iterdir()) == []


def test_a_submodule_replaces_no_files(host: AgentHost, origin: Origin) -> None:
    commit = origin.commit(a="1")
    origin.send(host, commit)
    host.verb("take-bundle", "p1", "b1")
    module = {"path": "a", "archive": f"sources/{LIB}.tar.gz"}
    step = build_only(host, with_submodules(git_build(commit), [module]))
    assert "its folder is not empty" in step.only("build_failed")["message"]


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", ""])
def test_a_plan_with_a_submodule_outside_of_the_tree_is_invalid(host: AgentHost, path: str) -> None:
    module = {"path": path, "archive": f"sources/{LIB}.tar.gz"}
    step = host.send_plan(a_plan(builds=[with_submodules(a_build(), [module])]))
    assert host.verb("start", step.job, step.name)["error"]["code"] == "bad_plan"


def test_another_repository_is_available_to_install_build_and_server(
    host: AgentHost, origin: Origin
) -> None:
    commit = origin.commit(word_txt="of framework")
    origin.send(host, commit)
    host.verb("take-bundle", "p1", "b1")
    copy = "import shutil, sys; shutil.copy(*sys.argv[1:])"
    install = {
        "key": "k", "files": [], "repositories": ["framework"], "timeout_s": 20,
        "steps": [["{python}", "-c", copy, "{framework_tree}/word.txt", "{installed}"]],
    }  # fmt: skip
    paths = ["{installed}/word.txt", "{framework_tree}/word.txt"]
    framework = {"commit": commit, "source": {"repository": "p1"}}
    build = a_build(
        install=install,
        repositories={"framework": framework},
        steps=[["{python}", "-c", SHOW, *paths]],
    )
    host.send_source(
        {"server.py": SERVER.format(extra="print(open(sys.argv[2]).read(), flush=True)")}
    )
    argv = ["{python}", "server.py", "{port}", paths[1]]
    trial = a_trial(host.send_tool(), server=a_server(argv=argv))
    step = host.run_round(a_plan(trial, builds=[build]))
    assert step.only("trial_done"), step.events
    assert "of framework of framework" in host.verb("log", "j1", "a1-r1", build["id"])["text"]
    assert "of framework" in (step.folder / "trials/t1/server.log").read_text()
    # The install has its own copy, which stays if the build is removed.
    (copied,) = (host.root / "installs").glob("*/repositories/framework/word.txt")
    assert copied.read_text() == "of framework"


def test_an_install_cannot_use_an_unknown_repository(host: AgentHost) -> None:
    install = {"key": "k", "files": [], "repositories": ["other"], "steps": [], "timeout_s": 20}
    step = host.send_plan(a_plan(builds=[a_build(install=install)]))
    error = host.verb("start", step.job, step.name)["error"]
    assert "which the build has no source of" in error["message"]


def test_an_archive_of_a_submodule_is_not_trusted(host: AgentHost, origin: Origin) -> None:
    path = host.root / f"sources/{LIB}.tar.gz"
    write_tar(path, {"x": "1"})
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "../../../secret"
        archive.addfile(link)
    step = build_only(host, with_submodules(a_build(), MODULES[:1]))
    assert "leads outside" in step.only("build_failed")["message"]


LFS = "sources/lfs.tar"
MODEL = "the model"


@pytest.fixture
def pointed(host: AgentHost, origin: Origin) -> str:
    """A commit on the host whose `model.bin` is a program in Git LFS."""
    (origin.folder / "model.bin").write_text("pointer")
    (origin.folder / "model.bin").chmod(0o755)
    return commit_link(origin, host, a="1")


def write_lfs_files(host: AgentHost, *members: tarfile.TarInfo) -> None:
    with tarfile.open(host.root / LFS, "w") as archive:
        for member in members:
            content = io.BytesIO(MODEL.encode()) if member.isfile() else None
            archive.addfile(member, content)


def a_file(name: str, mode: int = 0o644) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(MODEL), mode
    return member


def with_lfs(build: dict[str, Any]) -> dict[str, Any]:
    return {**build, "source": {**build["source"], "lfs_files": LFS, "submodules": MODULES}}


def test_files_of_lfs_replace_their_pointers_and_git_sees_a_clean_tree(
    host: AgentHost, pointed: str
) -> None:
    write_lfs_files(host, a_file("model.bin", 0o755), a_file("vendor/lib/lib.txt"))
    show = ["{python}", "-c", SHOW, "model.bin", "vendor/lib/lib.txt", "vendor/lib/deep/deep.txt"]
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
    build = with_lfs(git_build(pointed, steps=[show, describe]))
    step = build_only(host, build)
    first = step.only("build_done")["digests"]
    log = host.verb("log", step.job, step.name, build["id"])["text"]
    assert f"{MODEL} {MODEL} of deep" in log
    assert log.splitlines()[-1] == pointed
    tree = host.root / build["tree"] / "tree"
    assert (tree / "model.bin").stat().st_mode & 0o777 == 0o755
    assert {path.name for path in tree.parent.iterdir() if "lfs" in path.name} == set()
    # Other content is another build.
    (host.root / build["tree"] / ".done").unlink()
    write_lfs_files(host, a_file("model.bin", 0o644))
    second = build_only(host, build, "a1-r2").only("build_done")["digests"]
    assert first["source"] != second["source"]


def test_an_archive_has_files_of_lfs_too(host: AgentHost, origin: Origin) -> None:
    host.send_source({"model.bin": "pointer"})
    write_lfs_files(host, a_file("model.bin"))
    build = with_lfs(a_build(steps=[["{python}", "-c", SHOW, "model.bin"]]))
    step = build_only(host, build)
    assert step.only("build_done"), step.events
    assert MODEL in host.verb("log", step.job, step.name, build["id"])["text"]


def test_files_of_lfs_replace_only_files_of_the_commit(
    host: AgentHost, origin: Origin, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("kept")
    (origin.folder / "away").symlink_to(outside)
    (origin.folder / "link").symlink_to(outside / "x")
    build = with_lfs(git_build(commit_link(origin, host, a="1")))
    link = tarfile.TarInfo("a")
    link.type, link.linkname = tarfile.SYMTYPE, "link"
    for number, member in enumerate(
        (a_file("away/x"), a_file("link"), a_file("new"), a_file("vendor"), link), 1
    ):
        write_lfs_files(host, member)
        failed = build_only(host, build, f"a1-r{number}").only("build_failed")["message"]
        assert "is no file of the commit" in failed or "a is a link" in failed
    assert (outside / "x").read_text() == "kept"


def test_a_plan_with_files_of_lfs_outside_of_the_work_directory_is_invalid(host: AgentHost) -> None:
    build = a_build()
    build["source"] = {**build["source"], "lfs_files": "../x"}
    step = host.send_plan(a_plan(builds=[build]))
    assert host.verb("start", step.job, step.name)["error"]["code"] == "bad_plan"
