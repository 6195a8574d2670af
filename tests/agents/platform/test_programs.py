"""Versions of the programs that a host has."""

import json
import os
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

from agents.hostagent.commands import prepare
from agents.hostagent.platform import program_locations, programs
from agents.hostagent.platform.programs import CACHE, inspect_programs
from tests.support.programs import tool

ONLY_VERSION = '[ "$1" = --version ] || exit 1'
pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs are shell scripts here")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what a test puts there, and a home without anything."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(program_locations, "GO", tmp_path / "go/bin")
    monkeypatch.setattr(program_locations, "HOMEBREW", tmp_path / "homebrew/bin")
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def install(folder: Path, name: str, script: str) -> Path:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_path_version_and_hash_of_a_program_are_reported(path: Path, work: Path) -> None:
    program = install(path, "oha", "echo oha 1.14.0")
    install(path, "nginx", "echo nginx version: nginx/1.22.1 >&2")
    install(path, "wrk", "echo wrk 4.1.0; exit 1")
    report = inspect_programs(work)
    tools = report["tools"]
    assert (tools["oha"]["path"], tools["oha"]["version"]) == (str(program), "1.14.0")
    assert len(tools["oha"]["sha256"]) == 64
    assert (tools["nginx"]["version"], tools["wrk"]["version"]) == ("1.22.1", "4.1.0")
    assert (tools["k6"], report["languages"]["go"]) == (None, None)
    assert "reason" not in tools["oha"]


def test_features_of_a_load_tool_are_reported(path: Path, work: Path) -> None:
    install(path, "oha", "echo oha 1.16.0")
    install(path, "k6", "echo k6 v1.8.1")
    tools = inspect_programs(work)["tools"]
    assert tools["oha"]["features"] == ["http3"]
    assert "features" not in tools["k6"]
    refuses = '[ "$1" = --version ] || { echo has not been built with HTTP/3 >&2; exit 1; }'
    os.utime(install(path, "oha", f"{refuses}; echo oha 1.16.0"), ns=(1, 1))
    assert inspect_programs(work)["tools"]["oha"]["features"] == []


@pytest.fixture
def ghz() -> Path:
    return tool("ghz")


def test_the_version_of_a_dev_build_is_found(ghz: Path, path: Path, work: Path) -> None:
    (path / "ghz").symlink_to(ghz)
    assert inspect_programs(work)["tools"]["ghz"]["version"] == "0.93.0"


def test_results_cached_by_an_older_agent_are_not_used(path: Path, work: Path) -> None:
    program = install(path, "oha", "echo oha 1.14.0")
    stat = program.stat()
    kept = {
        "path": str(program),
        "version": "1.13.0",
        "sha256": "ab",
        "stamp": [stat.st_mtime_ns, stat.st_size],
        "until": time.time() + 1000,
    }
    (work / CACHE).write_text(json.dumps({str(program): kept}))
    assert inspect_programs(work)["tools"]["oha"]["version"] == "1.14.0"


def test_a_program_without_a_version_is_named(path: Path, work: Path) -> None:
    install(path, "ruby", "echo ruby 3.1.2 is not installed; exit 127")
    ruby = inspect_programs(work)["languages"]["ruby"]
    assert (ruby["version"], ruby["reason"]) == (None, "it reported no version")


# Read before the others, and after them.
@pytest.mark.parametrize(("group", "hanging"), [("tools", "nginx"), ("programs", "ghc")])
def test_a_program_that_hangs_does_not_hide_the_others(
    path: Path, work: Path, monkeypatch: pytest.MonkeyPatch, group: str, hanging: str
) -> None:
    monkeypatch.setattr(programs, "_ANSWERS_S", 1.0)
    slow = f"{sys.executable} -c 'import time; time.sleep(300)' & echo $! > {work}/pid; wait"
    install(path, hanging, slow)
    install(path, "node", "echo v20.11.1")
    report = inspect_programs(work)
    reported = report[group][hanging]
    assert (reported["version"], reported["reason"]) == (None, "no answer in time")
    assert report["languages"]["node"]["version"] == "20.11.1"
    # What the program itself had started has ended, too.
    pid = int((work / "pid").read_text())
    deadline = time.monotonic() + 30
    while _lives(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("group", "name", "says"),
    [
        ("languages", "go", "go version go1.19.8"),
        ("languages", "python3.9", "3.9.2"),
        ("programs", "gcc", "12.2.0"),
    ],
)
def test_programs_that_identify_builds_are_awaited(
    path: Path, work: Path, group: str, name: str, says: str
) -> None:
    wait = f"{sys.executable} -c 'import time; time.sleep(1)'"
    install(path, name, f"{wait}; echo {says}")
    assert inspect_programs(work)[group][name]["version"] == says.rpartition("go")[2]


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_program_is_queried_again_only_after_a_change(path: Path, work: Path) -> None:
    counting = f"{ONLY_VERSION}; echo asked >> {work}/count; echo oha 1.14.{{}}"
    install(path, "oha", counting.format(0))
    assert inspect_programs(work) == inspect_programs(work)
    assert (work / "count").read_text() == "asked\n"
    program = install(path, "oha", counting.format(1))
    os.utime(program, ns=(1, 1))
    assert inspect_programs(work)["tools"]["oha"]["version"] == "1.14.1"


def test_a_program_is_queried_again_after_a_day(path: Path, work: Path) -> None:
    install(path, "oha", f"{ONLY_VERSION}; echo asked >> {work}/count; echo oha 1.14.0")
    inspect_programs(work)
    kept = (work / CACHE).read_text()
    (work / CACHE).write_text(kept.replace('"until":', '"until":-'))
    inspect_programs(work)
    assert (work / "count").read_text() == "asked\nasked\n"


def test_a_damaged_cache_is_ignored(path: Path, work: Path) -> None:
    install(path, "oha", "echo oha 1.14.0")
    (work / CACHE).write_text("{")
    assert inspect_programs(work)["tools"]["oha"]["version"] == "1.14.0"


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """Where pyenv keeps them."""
    return tmp_path / "home/.pyenv/versions"


def in_folder(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return install(folder, name, script)


def test_programs_of_version_managers_are_found(
    path: Path, work: Path, versions: Path, tmp_path: Path
) -> None:
    in_folder(versions / "3.7.16/bin", "python3.7", "echo Python 3.7.16")
    in_folder(versions / "3.9.2/bin", "python3", "echo Python 3.9.2")
    newest = in_folder(versions / "3.13.0/bin", "python3", "echo Python 3.13.0")
    cargo = in_folder(tmp_path / "home/.cargo/bin", "cargo", "echo cargo 1.95.0")
    in_folder(tmp_path / "go/bin", "go", "echo go version go1.26.1 linux/amd64")
    install(path, "node", "echo v20.11.1")
    languages = inspect_programs(work)["languages"]
    assert languages["python3"]["path"] == str(newest)
    assert languages["python3.7"]["version"] == "3.7.16"
    assert languages["cargo"]["path"] == str(cargo)
    assert languages["go"]["version"] == "1.26.1"
    assert languages["go"]["beyond_path"] is True
    assert "beyond_path" not in languages["node"]


def test_a_shim_without_an_installed_version_does_not_count(
    path: Path, work: Path, versions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shims = path.parent / "shims"
    for name in ("python3.6", "python3.8"):
        in_folder(shims, name, f"echo pyenv: {name}: command not found; exit 127")
    real = in_folder(versions / "3.8.18/bin", "python3.8", "echo Python 3.8.18")
    in_folder(shims, "python3.10", "echo Python 3.10.13")
    monkeypatch.setenv("PATH", f"{shims}{os.pathsep}{path}")
    languages = inspect_programs(work)["languages"]
    assert "python3.6" not in languages
    assert languages["python3.8"]["path"] == str(real)
    assert languages["python3.10"]["path"] == str(shims / "python3.10")


@pytest.mark.parametrize("folder", ["versions/3.8.18/bin", "installs/python/3.8.18/bin"])
def test_versions_next_to_the_shims_of_a_manager_outside_of_the_home_are_found(
    path: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    shims = tmp_path / "opt/manager/shims"
    in_folder(shims, "python3.8", "echo Python 3.8.0")
    real = in_folder(shims.parent / folder, "python3.8", "echo Python 3.8.18")
    monkeypatch.setenv("PATH", f"{shims}{os.pathsep}{path}")
    python = inspect_programs(work)["languages"]["python3.8"]
    assert (python["path"], python["version"]) == (str(real), "3.8.18")


def test_the_version_of_a_jdk_is_read_from_its_release_file(
    path: Path, work: Path, tmp_path: Path
) -> None:
    for name in ("java", "javac"):
        program = in_folder(tmp_path / "jdk/bin", name, "echo started 0.0.1")
        (path / name).symlink_to(program)
    release = tmp_path / "jdk/release"
    release.write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\nSOURCE=""\n')
    report = inspect_programs(work)
    assert report["languages"]["java"]["version"] == "17.0.15"
    assert report["programs"]["javac"]["version"] == "17.0.15"
    release.unlink()
    assert inspect_programs(None)["languages"]["java"]["version"] == "0.0.1"


def test_programs_that_a_job_needs_are_searched_for(path: Path, work: Path) -> None:
    install(path, "stack", f"{ONLY_VERSION}; echo Version 3.1.1")
    install(path, "gcc", f"{ONLY_VERSION}; echo 'gcc (Debian 12.2.0-14) 12.2.0'")
    report = inspect_programs(work, ["stack", "npm", "python3", "../bad"])["programs"]
    assert report["stack"]["version"] == "3.1.1"
    assert report["npm"] is None
    assert report["gcc"]["version"] == "12.2.0"
    assert "../bad" not in report
    assert set(inspect_programs(work)["programs"]) == {"gcc"}


@pytest.mark.parametrize(
    ("name", "folder", "older"),
    [
        ("node", ".nvm/versions/node/v20.11.1/bin", ".nvm/versions/node/v9.2.0/bin"),
        ("node", ".local/share/fnm/node-versions/v22.1.0/installation/bin", None),
        ("node", ".volta/tools/image/node/20.1.0/bin", ".volta/tools/image/node/18.9.0/bin"),
        ("ruby", ".rbenv/versions/3.3.0/bin", None),
        ("ruby", ".asdf/installs/ruby/3.10.0/bin", ".asdf/installs/ruby/3.9.0/bin"),
        ("go", ".local/share/mise/installs/go/1.22.0/bin", None),
        ("java", ".sdkman/candidates/java/21.0.1-tem/bin", ".sdkman/candidates/java/8.0.3/bin"),
        ("node", ".local/bin", None),
        ("cargo", "miniforge3/bin", None),
    ],
)
def test_each_version_manager_is_searched(
    path: Path, work: Path, tmp_path: Path, name: str, folder: str, older: str | None
) -> None:
    program = in_folder(tmp_path / "home" / folder, name, "echo 20.11.1")
    if older:
        in_folder(tmp_path / "home" / older, name, "echo 9.2.0")
    found = inspect_programs(work)["languages"][name]
    assert (found["path"], found["beyond_path"]) == (str(program), True)


def test_programs_are_searched_in_the_folders_of_a_host_first(
    path: Path, work: Path, tmp_path: Path
) -> None:
    install(path, "node", "echo v20.1.0")
    folder = tmp_path / "node-22"
    folder.mkdir()
    program = install(folder, "node", "echo v22.1.0")
    answer = prepare.facts(work, Namespace(folders=[str(folder)]))
    node = answer["facts"]["languages"]["node"]
    assert (node["path"], node["version"]) == (str(program), "22.1.0")
    assert "beyond_path" not in node
