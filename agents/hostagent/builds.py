"""From a commit's archive to a built tree, once per commit and recipe."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from .archive import unpack
from .errors import BuildFailed
from .files import tail_text, write_bytes
from .paths import StepDir, below, build_dir, tree_dir
from .plan import Build
from .processes import Child, environment
from .words import replace

#: Lies beside a tree that is complete.
DONE = ".done"


def ensure(step: StepDir, build: Build) -> bool:
    """Make the tree unless it is there; True if it was. BuildFailed says what went wrong.

    A build that was cut short has no `.done` beside its tree and is made anew.
    """
    folder = build_dir(step.root, build.tree)
    if (folder / DONE).exists():
        (folder / DONE).touch()  # prune goes by the last use
        return True
    shutil.rmtree(folder, ignore_errors=True)
    tree = tree_dir(step.root, build.tree)
    unpack(below(step.root, build.source), tree)
    deadline = time.monotonic() + build.timeout_s
    for argv in build.steps:
        _run(step, build, replace(argv, {"tree": tree}), tree, deadline)
    write_bytes(folder / DONE, b"")
    return False


def _run(step: StepDir, build: Build, argv: list[str], tree: Path, deadline: float) -> None:
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
        _wait(child, deadline)
    code = child.exit_code
    child.kill()
    if code is None:
        raise BuildFailed(f"{shown!r} took longer than {build.timeout_s:g} s", tail_text(log))
    if code:
        raise BuildFailed(f"the build step {shown!r} ended with {code}", tail_text(log))


def _wait(child: Child, deadline: float) -> None:
    while child.exit_code is None and time.monotonic() < deadline:
        time.sleep(0.02)
