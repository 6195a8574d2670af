"""From `sources/<commit>.tar.gz` to a built tree that is marked as done."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from . import archive, words
from .errors import AgentError, BuildFailed
from .files import tail_text
from .paths import StepDir, below, build_dir, tree_dir
from .plan import Build
from .processes import Child, environment
from .pulse import Pulse

DONE = ".done"


def is_done(root: Path, tree: str) -> bool:
    return (build_dir(root, tree) / DONE).exists()


def make(build: Build, step: StepDir, pulse: Pulse) -> bool:
    """Unpack and build, unless it was done before; True if it was. Raises BuildFailed, Aborted."""
    folder = build_dir(step.root, build.tree)
    if (folder / DONE).exists():
        os.utime(folder / DONE)  # prune goes by the last use
        return True
    tree = tree_dir(step.root, build.tree)
    _unpack(below(step.root, build.source), tree)
    with open(step.build_log(build.commit), "wb") as log:
        _run_steps(build, tree, step, log, pulse)
    (folder / DONE).touch()
    return False


def _unpack(source: Path, tree: Path) -> None:
    if not source.is_file():
        raise BuildFailed(f"the source {source.name} is not on this host; send it again")
    part = tree.with_name("tree.part")
    for left in (part, tree):
        shutil.rmtree(left, ignore_errors=True)
    archive.unpack(source, part)
    os.replace(part, tree)


def _run_steps(build: Build, tree: Path, step: StepDir, log: IO[Any], pulse: Pulse) -> None:
    deadline = time.monotonic() + build.timeout_s
    for argv in build.steps:
        _run(words.replace(argv, {"tree": tree}), build, tree, step, log, deadline, pulse)


def _run(
    argv: list[str],
    build: Build,
    tree: Path,
    step: StepDir,
    log: IO[Any],
    deadline: float,
    pulse: Pulse,
) -> None:
    def failed(what: str) -> BuildFailed:
        return BuildFailed(f"`{' '.join(argv)}` {what}", tail_text(step.build_log(build.commit)))

    env = environment(step.path, build.env)
    try:
        child = Child(argv, cwd=tree, env=env, stdout=log, stderr=log)
    except (OSError, AgentError) as error:
        raise failed(f"could not be started: {error}") from error
    with contextlib.closing(_Killed(child.kill)):
        while child.exit_code is None:
            pulse.wait(deadline - time.monotonic())
            if time.monotonic() > deadline and child.exit_code is None:
                raise failed(f"was not done within {build.timeout_s:g} s for the whole build")
    if child.exit_code:
        raise failed(f"ended with exit code {child.exit_code}")


class _Killed:
    """What a build step leaves running ends with it."""

    def __init__(self, close: Callable[[], None]) -> None:
        self.close = close
