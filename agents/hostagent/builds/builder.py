"""From a commit's source to a built tree, once per commit and recipe."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Optional

from ..errors import AgentError, BuildFailed
from ..files import append_file, remove_tree, write_bytes
from ..paths import DONE, NOTE, StepDir, below, build_dir, installed_for, tree_dir
from ..sandbox.directories import Grounds
from ..step.plan import Build, Install
from . import installs
from .archive import unpack
from .build_steps import Beat, Commands
from .repositories import add_worktree

LOG = "build.log"


class Made(NamedTuple):
    """`cached`: all of it was there. `installed`: the name of what is installed for it."""

    cached: bool
    installed: Optional[str]


def ensure(step: StepDir, build: Build, beat: Beat, grounds: Grounds) -> Made:
    """Make the tree, and what it needs, unless it is there. BuildFailed says what went wrong.

    A build that was cut short has no mark beside its tree, one that another user has made has that
    user's; both are made anew. `beat` is called often while something runs, and may raise to end
    everything. What install and build wrote is kept, and is in the step's log also where nothing
    had to be done.
    """
    folder, tree = build_dir(step.root, build.tree), tree_dir(step.root, build.tree)
    log = step.build_log(build.id)
    log.write_bytes(b"")
    built = grounds.made(folder / DONE)
    if not built:
        remove_tree(folder)
        _check_out(step, build, tree, grounds)
    name = None if build.install is None else _name_of(build.install, step, build)
    words = {"tree": tree, **installs.words(step.root, build.tree)}
    commands = Commands(step, build, tree, words, beat, grounds)
    installed = name is None or installs.ensure(commands, name)
    if built:
        (folder / DONE).touch()  # prune goes by the last use
        append_file(folder / LOG, log)
        return Made(installed, name)
    began = log.stat().st_size
    grounds.open(build.tree)
    commands.run("build", build.steps, build.timeout_s)
    (folder / LOG).write_bytes(log.read_bytes()[began:])
    write_bytes(folder / DONE, grounds.mark)
    return Made(False, name)


def _name_of(install: Install, step: StepDir, build: Build) -> str:
    """As noted, since the build may have changed the files that the name is made of."""
    noted = installed_for(step.root, build.tree)
    if noted is not None:
        return noted
    name = installs.name_of(install, tree_dir(step.root, build.tree))
    write_bytes(build_dir(step.root, build.tree) / NOTE, name.encode())
    return name


def _check_out(step: StepDir, build: Build, tree: Path, grounds: Grounds) -> None:
    if build.archive is not None:
        unpack(below(step.root, build.archive), tree)
    elif build.repository is not None:
        try:
            add_worktree(step.root, build.repository, build.commit, tree)
        except AgentError as error:
            raise BuildFailed(error.message) from error
    grounds.settle(tree)
