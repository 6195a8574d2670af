"""Versions of the programs that a host has."""

import os
import sys
import time
from pathlib import Path

import pytest

from agents.hostagent import programs
from agents.hostagent.programs import CACHE, survey, version_in

pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs are shell scripts here")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
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


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("oha 1.14.0\n", "1.14.0"),
        ("git version 2.39.5 (Apple Git-154)", "2.39.5"),
        ("wrk 4.1.0 [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk", "4.1.0"),
        ("h2load nghttp2/1.52.0", "1.52.0"),
        ("k6 v0.49.0 (commit/4f7f1a1, go1.21.6, linux/amd64)", "0.49.0"),
        ("nginx version: nginx/1.22.1", "1.22.1"),
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", "7.0.15"),
        ("OpenSSL 1.1.1w  11 Sep 2023", "1.1.1w"),
        ("OpenSSL 3.0.17 1 Jul 2025 (Library: OpenSSL 3.0.17 1 Jul 2025)", "3.0.17"),
        ("go version go1.22.0 linux/amd64", "1.22.0"),
        ('openjdk version "21" 2023-09-19\nOpenJDK Runtime', "21"),
        ('openjdk version "17.0.9" 2023-10-17', "17.0.9"),
        ("v20.11.1", "20.11.1"),
        ("rustc 1.75.0 (82e1608df 2023-12-21)", "1.75.0"),
        ("ruby 3.1.2p20 (2022-04-12 revision 4491bb740a)", "3.1.2p"),
        ("PHP 8.2.7 (cli) (built: Jun  9 2023 19:37:27) (NTS)", "8.2.7"),
        ("dev build", None),
    ],
)
def test_it_finds_the_version_in_what_programs_say(said: str, version: str | None) -> None:
    assert version_in(said) == version


def test_it_tells_path_version_and_hash(path: Path, work: Path) -> None:
    program = install(path, "oha", "echo oha 1.14.0")
    install(path, "nginx", "echo nginx version: nginx/1.22.1 >&2")
    install(path, "wrk", "echo wrk 4.1.0; exit 1")
    found = survey(work)
    tools = found["tools"]
    assert (tools["oha"]["path"], tools["oha"]["version"]) == (str(program), "1.14.0")
    assert len(tools["oha"]["sha256"]) == 64
    assert (tools["nginx"]["version"], tools["wrk"]["version"]) == ("1.22.1", "4.1.0")
    assert (tools["k6"], found["languages"]["go"]) == (None, None)
    assert "reason" not in tools["oha"]


def test_it_says_which_program_did_not_tell_its_version(path: Path, work: Path) -> None:
    install(path, "ruby", "echo ruby 3.1.2 is not installed; exit 127")
    ruby = survey(work)["languages"]["ruby"]
    assert (ruby["version"], ruby["reason"]) == (None, "it told no version")


def test_it_waits_for_no_program(path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_WELCOME_S", 0.2)
    slow = f"{sys.executable} -c 'import time; time.sleep(300)' & echo $! > {work}/pid; wait"
    install(path, "java", slow)
    install(path, "node", "echo v20.11.1")
    found = survey(work)
    java = found["languages"]["java"]
    assert (java["version"], java["reason"]) == (None, "it did not answer in time")
    assert found["languages"]["node"]["version"] == "20.11.1"
    # What the program itself had started has ended, too.
    pid = int((work / "pid").read_text())
    deadline = time.monotonic() + 30
    while _lives(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_it_asks_again_only_after_a_change(path: Path, work: Path) -> None:
    counting = f"echo asked >> {work}/count; echo oha 1.14.{{}}"
    install(path, "oha", counting.format(0))
    assert survey(work) == survey(work)
    assert (work / "count").read_text() == "asked\n"
    program = install(path, "oha", counting.format(1))
    os.utime(program, ns=(1, 1))
    assert survey(work)["tools"]["oha"]["version"] == "1.14.1"


def test_it_asks_again_after_a_day(path: Path, work: Path) -> None:
    install(path, "oha", f"echo asked >> {work}/count; echo oha 1.14.0")
    survey(work)
    kept = (work / CACHE).read_text()
    (work / CACHE).write_text(kept.replace('"until":', '"until":-'))
    survey(work)
    assert (work / "count").read_text() == "asked\nasked\n"


def test_it_asks_anew_where_the_answers_are_spoiled(path: Path, work: Path) -> None:
    install(path, "oha", "echo oha 1.14.0")
    (work / CACHE).write_text("{")
    assert survey(work)["tools"]["oha"]["version"] == "1.14.0"
