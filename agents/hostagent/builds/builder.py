"""Build the tree of a commit from its source, once per commit and recipe."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Optional

from ..errors import AgentError, BuildFailed
from ..files import append_file, remove_tree, write_bytes
from ..paths import (
    DONE,
    NOTE,
    StepDir,
    build_dir,
    get_tree_dir,
    read_install_name,
    resolve_working_dir,
)
from ..sandbox.directories import Sandbox
from ..step.plan import Build
from . import installs
from .build_records import BuildDigests, read_digests, record_period, write_digests
from .build_steps import BuildCommands, Heartbeat
from .install_inputs import InstallInputs
from .sources import (
    build_repository_placeholders,
    check_out,
    check_out_repositories,
    get_repository_folder,
)
from .tree_files import compute_tree_digest

LOG = "build.log"


class BuildResult(NamedTuple):
    """`cached`: nothing had to be built. `installed`: the name of the install of the tree."""

    cached: bool
    installed: Optional[str]
    digests: BuildDigests


def ensure_build(
    step: StepDir, build: Build, heartbeat: Heartbeat, sandbox: Sandbox
) -> BuildResult:
    """Build the tree, and what it needs, unless it exists. Raises BuildFailed with the error.

    An interrupted build has no `.done` file next to its tree; the file of another user's build
    contains that user. A tree may refer to its install. In all three cases it is built again if
    that is missing. `heartbeat` is called often while a command runs, and may raise to end
    everything. The output of install and build is stored, and is in the step's log even if the
    tree was cached.
    """
    log = step.build_log(build.id)
    log.write_bytes(b"")
    found = find_build(step, build, sandbox)
    if found is None:
        return _build(step, build, heartbeat, sandbox)
    if found.installed is not None:
        installs.note_use(step.root, found.installed, log)
    folder = build_dir(step.root, build.tree)
    (folder / DONE).touch()  # prune reads it as the time of the last use
    append_file(folder / LOG, log)
    return found


def find_build(step: StepDir, build: Build, sandbox: Sandbox) -> Optional[BuildResult]:
    """Return the build if its tree and its install exist, made by the current user."""
    name = read_install_name(step.root, build.tree)
    digests = read_digests(step.root, build.tree)
    if digests is None or not sandbox.is_complete(build_dir(step.root, build.tree) / DONE):
        return None
    if build.install is None:
        return BuildResult(True, name, digests)
    if name is None or not installs.is_complete(step.root, name, sandbox):
        return None
    return BuildResult(True, name, digests)


def _build(step: StepDir, build: Build, heartbeat: Heartbeat, sandbox: Sandbox) -> BuildResult:
    folder, tree = build_dir(step.root, build.tree), get_tree_dir(step.root, build.tree)
    remove_tree(folder)
    _check_out_all(step, build, tree, sandbox)
    source = _hash_trees(step, build, heartbeat)
    home = sandbox.environment(build.tree)
    placeholders = {"tree": tree, **build_repository_placeholders(step.root, build.tree)}
    commands = BuildCommands(step, build, tree, placeholders, home, heartbeat, sandbox)
    with record_period(step.root, build.tree):
        name = _ensure_install(commands)
        _run_steps(commands, name)
    digests = BuildDigests(
        source=_hash_source(build, name, source),
        build=_hash_build(name, _hash_trees(step, build, heartbeat) if build.steps else source),
    )
    write_digests(step.root, build.tree, digests)
    write_bytes(folder / DONE, sandbox.owner_note)
    return BuildResult(False, name, digests)


def _ensure_install(commands: BuildCommands) -> Optional[str]:
    """Return the name of the install after it was created or found; None if there is none."""
    step, build = commands.step, commands.build
    if build.install is None:
        return None
    inputs = InstallInputs(get_tree_dir(step.root, build.tree), build.install.files)
    name = installs.compute_install_name(inputs, build.install.key, commands.heartbeat)
    write_bytes(build_dir(step.root, build.tree) / NOTE, name.encode())
    if installs.is_complete(step.root, name, commands.sandbox):
        installs.note_use(step.root, name, commands.log)
    else:
        installs.run_install(commands, inputs, name)
    return name


def _run_steps(commands: BuildCommands, name: Optional[str]) -> None:
    """Run the build steps, and store their output next to the tree."""
    root, build, log = commands.step.root, commands.build, commands.log
    installed = installs.build_placeholders(root, build.tree)
    try:
        folder = resolve_working_dir(get_tree_dir(root, build.tree), build.working_dir)
    except AgentError as error:
        raise BuildFailed(error.message) from error
    commands = commands._replace(folder=folder, placeholders={**commands.placeholders, **installed})
    began = log.stat().st_size
    commands.sandbox.open(build.tree)
    with _protect_install(commands, name):
        commands.run("build", build.steps, build.timeout_s)
    (build_dir(root, build.tree) / LOG).write_bytes(log.read_bytes()[began:])


@contextlib.contextmanager
def _protect_install(commands: BuildCommands, name: Optional[str]) -> Iterator[None]:
    """Remove the install if the build steps in the block change it, and raise BuildFailed then."""
    if name is None or not commands.build.steps:
        yield
        return
    with installs.find_changes(commands.step.root, name) as changes:
        yield
    if changes:
        raise BuildFailed(installs.describe_changes(changes), commands.read_tail())


def _hash_source(build: Build, installed: Optional[str], tree_digest: str) -> str:
    """Return the digest of what the build is made from."""
    made_from = [
        tree_digest, installed, build.working_dir, build.steps, sorted(build.env.items()),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()


def _hash_build(installed: Optional[str], tree_digest: str) -> str:
    """Return the digest of the built tree and of its install."""
    return hashlib.sha256(json.dumps([tree_digest, installed]).encode()).hexdigest()


def _check_out_all(step: StepDir, build: Build, tree: Path, sandbox: Sandbox) -> None:
    """Check out the commit, and the other repositories next to its tree."""
    check_out(step.root, build.source, tree)
    sandbox.give_checkout(tree)
    for folder in check_out_repositories(step.root, build.repositories, tree.parent):
        sandbox.give_source(folder)


def _hash_trees(step: StepDir, build: Build, heartbeat: Heartbeat) -> str:
    """Return the digest of the tree and of the other repositories, if there are any."""
    tree = get_tree_dir(step.root, build.tree)
    own = compute_tree_digest(tree, heartbeat)
    if not build.repositories:
        return own
    others = {
        name: compute_tree_digest(get_repository_folder(tree.parent, name), heartbeat)
        for name in sorted(build.repositories)
    }
    return hashlib.sha256(json.dumps([own, others]).encode()).hexdigest()
