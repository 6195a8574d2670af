"""Build the tree of a commit from its source, once per commit and recipe."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Optional

from ..errors import AgentError, BuildFailed
from ..files import append_file, remove_tree, write_bytes
from ..paths import DONE, NOTE, StepDir, build_dir, get_tree_dir, read_install_name, resolve_below
from ..sandbox.directories import Sandbox
from ..step.plan import Build, Install
from . import installs
from .archive import unpack
from .build_steps import BuildCommands, Heartbeat
from .repositories import add_worktree

LOG = "build.log"


class BuildResult(NamedTuple):
    """`cached`: nothing had to be built. `installed`: the name of the install of the tree."""

    cached: bool
    installed: Optional[str]


def ensure_build(
    step: StepDir, build: Build, heartbeat: Heartbeat, sandbox: Sandbox
) -> BuildResult:
    """Build the tree, and what it needs, unless it exists. Raises BuildFailed with the error.

    An interrupted build has no `.done` file next to its tree; the file of another user's build
    contains that user. Both are built again. `heartbeat` is called often while a command runs, and
    may raise to end everything. The output of install and build is stored, and is in the step's
    log even if the tree was cached.
    """
    folder, tree = build_dir(step.root, build.tree), get_tree_dir(step.root, build.tree)
    log = step.build_log(build.id)
    log.write_bytes(b"")
    built = sandbox.is_complete(folder / DONE)
    if not built:
        remove_tree(folder)
        _check_out_source(step, build, tree, sandbox)
    name = None if build.install is None else _read_install_name(build.install, step, build)
    placeholders = {"tree": tree, **installs.build_placeholders(step.root, build.tree)}
    commands = BuildCommands(step, build, tree, placeholders, heartbeat, sandbox)
    installed = name is None or installs.ensure_install(commands, name)
    if built:
        (folder / DONE).touch()  # prune reads it as the time of the last use
        append_file(folder / LOG, log)
        return BuildResult(installed, name)
    began = log.stat().st_size
    sandbox.open(build.tree)
    commands.run("build", build.steps, build.timeout_s)
    (folder / LOG).write_bytes(log.read_bytes()[began:])
    write_bytes(folder / DONE, sandbox.owner_note)
    return BuildResult(False, name)


def _read_install_name(install: Install, step: StepDir, build: Build) -> str:
    """Return the stored name: the build may have changed the files that determine the name."""
    noted = read_install_name(step.root, build.tree)
    if noted is not None:
        return noted
    name = installs.install_name(install, get_tree_dir(step.root, build.tree))
    write_bytes(build_dir(step.root, build.tree) / NOTE, name.encode())
    return name


def _check_out_source(step: StepDir, build: Build, tree: Path, sandbox: Sandbox) -> None:
    if build.archive is not None:
        unpack(resolve_below(step.root, build.archive), tree)
    elif build.repository is not None:
        try:
            add_worktree(step.root, build.repository, build.commit, tree)
        except AgentError as error:
            raise BuildFailed(error.message) from error
    sandbox.give_checkout(tree)
