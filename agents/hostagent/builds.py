"""From a commit's source to a built tree, once per commit and recipe."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from .archive import unpack
from .errors import AgentError, BuildFailed
from .files import tail_text, write_bytes
from .paths import StepDir, below, build_dir, tree_dir
from .plan import Build
from .processes import Child, environment
from .repositories import add_worktree
from .words import replace

#: Lies beside a tree that is complete.
DONE = ".done"
LOG = "build.log"
Beat = Callable[[], None]


def ensure(step: StepDir, build: Build, beat: Beat) -> bool:
    """Make the tree unless it is there; True if it was. BuildFailed says what went wrong.

    A build that was cut short has no `.done` beside its tree and is made anew. `beat` is called
    often while a build step runs, and may raise to end everything. What the build wrote is kept
    beside the tree and, also of a build that was there, in the step.
    """
    folder = build_dir(step.root, build.tree)
    log = step.build_log(build.commit)
    if (folder / DONE).exists():
        (folder / DONE).touch()  # prune goes by the last use
        _copy(folder / LOG, log)
        return True
    shutil.rmtree(folder, ignore_errors=True)
    tree = tree_dir(step.root, build.tree)
    _check_out(step, build, tree)
    deadline = time.monotonic() + build.timeout_s
    for argv in build.steps:
        _run(step, build, replace(argv, {"tree": tree}), tree, deadline, beat)
    _copy(log, folder / LOG)
    write_bytes(folder / DONE, b"")
    return False


def _copy(source: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(source, target)


def _check_out(step: StepDir, build: Build, tree: Path) -> None:
    if build.archive is not None:
        unpack(below(step.root, build.archive), tree)
    elif build.repository is not None:
        try:
            add_worktree(step.root, build.repository, build.commit, tree)
        except AgentError as error:
            raise BuildFailed(error.message) from error


def _run(
    step: StepDir,
    build: Build,
    argv: list[str],
    tree: Path,
    deadline: float,
    beat: Beat,
) -> None:
    log = step.build_log(build.commit)
    shown = " ".join(argv)
    with open(log, "ab") as output:
        output.write(f"$ {shown}\n".encode())
        output.flush()
        try:
            child = Child(
                argv,
                cwd=tree,
                env=environment(step.path, build.env),
                stdout=output,
                stderr=output,
            )
        except OSError as error:
            raise BuildFailed(f"the build step {shown!r} cannot be started: {error}") from error
        try:
            _wait(child, deadline, beat)
            code = child.exit_code
        finally:
            child.kill()
    if code is None:
        raise BuildFailed(f"{shown!r} took longer than {build.timeout_s:g} s", tail_text(log))
    if code:
        raise BuildFailed(f"the build step {shown!r} ended with {code}", tail_text(log))


def _wait(child: Child, deadline: float, beat: Beat) -> None:
    while child.exit_code is None and time.monotonic() < deadline:
        beat()
        time.sleep(0.02)
