"""The target of the load: a small server in Go, built once, and a commit to name in Pitwall."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from devstack.demo_repository import FIRST, commit_version, run_git
from perf.fidelity.loads import HERE, WORK

SOURCE = HERE / "server"
PROTO = "hello.proto"


class TargetError(Exception):
    """There is no server; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`binary` is the server's; `repository` has one commit, `sha`, with the files for clients."""

    binary: Path
    repository: Path
    sha: str

    def argv(self, port: str, work: int = WORK) -> list[str]:
        return [str(self.binary), "-port", port, "-work", str(work)]


def build_target(folder: Path) -> Target:
    repository = folder / "repository"
    repository.mkdir()
    run_git(repository, "init", "--quiet", "--initial-branch=main")
    shutil.copy(SOURCE / PROTO, repository)
    commit_version(repository, FIRST)
    sha = run_git(repository, "rev-parse", "main").strip()
    return Target(binary=_build(folder / "server"), repository=repository, sha=sha)


def _build(binary: Path) -> Path:
    go = shutil.which("go")
    if go is None:
        raise TargetError("this benchmark builds its server with Go, and there is none: install it")
    argv = [go, "build", "-o", str(binary), "."]
    own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod -buildvcs=false"}
    done = subprocess.run(
        argv, cwd=SOURCE, env={**os.environ, **own}, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise TargetError(f"the server cannot be built; Go 1.24 or newer?\n{done.stderr.strip()}")
    return binary
