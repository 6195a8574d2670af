"""Git repositories for benchmarks: a small server, and many commits of 1 MB each."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from devstack.demo_repository import commit_version, run_git
from devstack.places import CHECKOUT
from perf.dispatch.workload import FILE_BYTES

SERVER = CHECKOUT / "agents" / "suites" / "hello" / "server.py"
DATES = ("Serve a greeting", "Say in the README how to start it")


def build_server_repository(folder: Path) -> tuple[str, str]:
    """Commit the small server of the `hello` suite twice. Return the hashes."""
    folder.mkdir(parents=True)
    run_git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "server.py").write_text(SERVER.read_text(encoding="utf-8"))
    commit_version(folder, DATES[0])
    (folder / "README.md").write_text("# Hello\n")
    commit_version(folder, DATES[1])
    first, second = run_git(folder, "rev-list", "--reverse", "main").split()
    return first, second


class FileRepository:
    """A repository whose commits each add one new file of 1 MB to the first commit.

    Each costs the same to send to a host that has the first commit.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        folder.mkdir(parents=True)
        run_git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
        self._import("commit refs/heads/main\n" + _WHO + "data 5\nfirst\n")
        self.first = run_git(folder, "rev-parse", "main").strip()

    def more(self, count: int) -> list[str]:
        """Create `count` commits, each on a separate branch. Return the hashes."""
        names = [f"refs/heads/b{self._made + number}" for number in range(count)]
        self._made += count
        for name in names:
            head = f"commit {name}\n{_WHO}data 4\nmore\nfrom {self.first}\n"
            file = f"M 100644 inline file.bin\ndata {FILE_BYTES}\n"
            self._import(head + file, os.urandom(FILE_BYTES) + b"\n")
        return run_git(self._folder, "rev-parse", *names).split()

    def _import(self, text: str, content: bytes = b"") -> None:
        subprocess.run(
            ["git", "--git-dir", str(self._folder), "fast-import", "--quiet"],
            input=text.encode() + content,
            check=True,
        )


_WHO = "committer Pitwall <bench@pitwall.invalid> 1767600000 +0000\n"
