"""The bare repositories of projects: git fills them from bundles and checks out worktrees.

git ignores its configuration on the host: no hooks, no filters, no credentials, no network, no
background maintenance during a measurement.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from ..errors import AgentError, BadArgument
from ..files import write_bytes
from ..paths import get_bundle_file, get_repository

#: Has `worktree add --force` for a missing tree, `worktree prune` and `safe.directory`.
OLDEST_GIT = (2, 17)
TIMEOUT_S = 300.0
REFS = "refs/pitwall/*"
_SHA = re.compile(r"[0-9a-f]{7,64}\Z")
_CONFIG = b"""\
[core]
\thooksPath = /dev/null
\tfsmonitor = false
[safe]
\tdirectory = *
[gc]
\tauto = 0
[maintenance]
\tauto = false
[submodule]
\trecurse = false
[advice]
\tdetachedHead = false
"""


def commits(root: Path, options: Namespace) -> dict[str, Any]:
    """The command `commits`: which commits of a project exist, and whether git is usable."""
    has_git = _has_git()
    path = get_repository(root, options.project)
    wanted = [_check_sha(sha) for sha in options.commits]
    there = _find_existing(path, wanted) if has_git and path.is_dir() else set()
    return {"git": has_git, "present": {sha: sha in there for sha in wanted}}


def take_bundle(root: Path, options: Namespace) -> dict[str, Any]:
    """The command `take-bundle`: fetch the refs of a bundle, and remove it in any case."""
    path, bundle = get_repository(root, options.project), get_bundle_file(root, options.name)
    if not bundle.is_file():
        raise BadArgument(f"there is no bundles/{bundle.name} to fetch")
    try:
        if not (path / "HEAD").exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _run_git(path.parent, ["init", "--quiet", "--bare", "--template=", str(path)])
        _run_git(path, ["fetch", "--quiet", "--no-tags", str(bundle), f"+{REFS}:{REFS}"])
    finally:
        bundle.unlink()
    return {"taken": options.name}


def add_worktree(root: Path, project: str, commit: str, tree: Path) -> None:
    """Check `commit` out as the new folder `tree`; AgentError with the message of git."""
    path = get_repository(root, project)
    if not path.is_dir():
        raise AgentError(f"this host has no repository of project {project}; run the job again")
    tree.parent.mkdir(parents=True, exist_ok=True)
    # --force: git may know the tree from a build that was removed.
    _run_git(path, ["worktree", "add", "--quiet", "--force", "--detach", str(tree), commit])


def ignore_changes(root: Path, project: str, tree: Path, names: Sequence[str]) -> None:
    """Let git regard these files of a worktree as unchanged, as it does with the filter of LFS."""
    words = ["update-index", "-z", "--assume-unchanged", "--stdin"]
    listed = b"".join(os.fsencode(name) + b"\0" for name in names)
    _run_git(get_repository(root, project), words, listed, tree=tree)


def forget_worktrees(root: Path) -> None:
    """Remove the worktrees without a folder from each repository."""
    if not _has_git():
        return
    for path in sorted(root.glob("repositories/*.git")):
        _run_git(path, ["worktree", "prune"])


def _has_git() -> bool:
    if shutil.which("git") is None:
        return False
    result = _run(Path("/"), ["--version"], {"PATH": os.environ.get("PATH", os.defpath)})
    version = re.search(rb"(\d+)\.(\d+)", result.stdout)
    return version is not None and tuple(map(int, version.groups())) >= OLDEST_GIT


def _find_existing(path: Path, wanted: Sequence[str]) -> set[str]:
    stdin = "".join(f"{sha}^{{commit}}\n" for sha in wanted)
    stdout = _run_git(path, ["cat-file", "--batch-check=%(objecttype)"], stdin.encode())
    lines = stdout.decode().splitlines()
    return {sha for sha, line in zip(wanted, lines) if line == "commit"}


def _check_sha(text: str) -> str:
    if not _SHA.match(text):
        raise BadArgument(f"{text!r} is not a commit: expected 7 to 64 hexadecimal digits")
    return text


def _run_git(
    folder: Path, words: Sequence[str], stdin: bytes = b"", *, tree: Optional[Path] = None
) -> bytes:
    """Return the output of git; AgentError with its error message if it failed.

    It runs in a repository, or in a worktree of it.
    """
    home = folder.parent if folder.suffix == ".git" else folder
    try:
        done = _run(tree or folder, words, _build_environment(home), stdin)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AgentError(f"git {words[0]} did not work: {error}") from error
    if done.returncode:
        stderr = done.stderr.decode("utf-8", "replace").strip()[-1000:]
        raise AgentError(f"git {words[0]} failed: {stderr or done.returncode}")
    return done.stdout


def _run(
    folder: Path, words: Sequence[str], env: dict[str, str], stdin: Optional[bytes] = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", *words],
        cwd=folder,
        env=env,
        input=stdin or b"",
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def _build_environment(home: Path) -> dict[str, str]:
    """Return the environment of git, whose home has only our configuration.

    It is a file and not `git -c`, because older versions read safe.directory only from files.
    """
    config = home / ".gitconfig"
    if not config.exists() or config.read_bytes() != _CONFIG:
        write_bytes(config, _CONFIG)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "file",
    }
