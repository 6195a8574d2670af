"""The dependencies of a subject: one folder for all builds with the same recipe.

It is below `installs/`; its name is a hash of the recipe's key and of its input files. A note with
that name is next to each tree that uses it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import BuildFailed
from ..files import append_file, remove_tree, write_bytes
from ..paths import DONE, install_dir, read_install_name, resolve_below
from ..protocol import WHOLE_COMMIT
from ..sandbox.directories import Sandbox
from .build_steps import BuildCommands, Heartbeat
from .install_inputs import InstallInputs
from .sources import build_repository_placeholders, check_out_repositories, list_folders
from .tree_files import iterate_files

LOG = "install.log"
#: In an install: the folder of the steps, with the input files.
_SOURCE = "source"
#: In an install: exists while build steps run that could change it.
_EXPOSED = "exposed"
_NAMED = 3


def compute_install_name(inputs: InstallInputs, key: str, heartbeat: Heartbeat) -> str:
    """Return the hash; BuildFailed if an input is missing in the commit."""
    return hashlib.sha256(f"{key}\n{inputs.compute_digest(heartbeat)}".encode()).hexdigest()[:32]


def get_content_folder(root: Path, name: str) -> Path:
    """Return the value of `{installed}`."""
    return install_dir(root, name) / "installed"


def build_placeholders(root: Path, tree: str) -> dict[str, str]:
    """Return `installed`, if the tree has an install, and the folders of other repositories."""
    name = read_install_name(root, tree)
    installed = {} if name is None else {"installed": str(get_content_folder(root, name))}
    return {**installed, **build_repository_placeholders(root, tree)}


def is_complete(root: Path, name: str, sandbox: Sandbox) -> bool:
    """Return whether the install exists, made by the current user.

    An interrupted one has no `.done` file, and one that was exposed to killed build steps a note.
    """
    folder = install_dir(root, name)
    return sandbox.is_complete(folder / DONE) and not (folder / _EXPOSED).exists()


def note_use(root: Path, name: str, log: Path) -> None:
    """Append the log of an existing install to that of a build, and note the time of its use."""
    (install_dir(root, name) / DONE).touch()  # prune reads it
    append_file(install_dir(root, name) / LOG, log)


def run_install(commands: BuildCommands, inputs: InstallInputs, name: str) -> None:
    """Run the install steps of the build in a folder with their input files only.

    That folder is `{tree}` for them. It stays next to the installed files, because these may refer
    to it; so do copies of the other repositories that the steps use. Raises BuildFailed with the
    error.
    """
    root, install = commands.step.root, commands.build.install
    assert install is not None
    folder, content = install_dir(root, name), get_content_folder(root, name)
    source = folder / _SOURCE
    remove_tree(folder)
    content.mkdir(parents=True)
    inputs.copy(source)
    working_dir = commands.build.working_dir
    work = source if working_dir is None else resolve_below(source, working_dir)
    work.mkdir(parents=True, exist_ok=True)
    for place in (content, source):
        commands.sandbox.give(place)
    used = {each: commands.build.repositories[each] for each in install.repositories}
    others = check_out_repositories(root, used, folder)
    for place in others:
        commands.sandbox.give_source(place)
    commands.sandbox.open_install(name)
    began = commands.log.stat().st_size
    own = commands._replace(
        folder=work,
        placeholders={"installed": content, "tree": source, **list_folders(folder)},
        home=commands.sandbox.environment(None),
    )
    try:
        own.run("install", install.steps, install.timeout_s)
    except BuildFailed as failed:
        output = failed.output.replace(f"{source}/", "")
        message = _explain(failed.message, output, inputs, install.files)
        raise BuildFailed(message, failed.output) from failed
    for place in (content, source):
        _check_links(place, inputs)
    (folder / LOG).write_bytes(commands.log.read_bytes()[began:])
    try:
        for place in (content, source, *others):
            commands.sandbox.take_back(place)
    except OSError as error:  # such as a path that is too long
        raise BuildFailed(f"the installed files cannot be stored: {error}") from error
    write_bytes(folder / DONE, commands.sandbox.owner_note)


def _check_links(place: Path, inputs: InstallInputs) -> None:
    """Raise BuildFailed for a link to a file of the commit that the install steps could not see.

    npm links the packages of a commit without reading them.
    """
    for entry in iterate_files(place):
        if entry.is_link and not os.path.exists(entry.path):
            target = os.path.join(os.path.dirname(entry.path), os.readlink(entry.path))
            absent = inputs.find_absent(os.path.relpath(target, place))
            if absent:
                raise BuildFailed(
                    f"the installed link {entry.name} leads to {absent[0]} of the commit, which "
                    "subject.install.files does not name: name it there, or '.' for all files"
                )


def _explain(message: str, output: str, inputs: InstallInputs, files: tuple[str, ...]) -> str:
    """Add to the message of a failed step which files of the commit it saw and may have needed."""
    if WHOLE_COMMIT in files:
        return message
    absent = inputs.find_absent(f"{message}\n{output}")
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    named = f"{', '.join(files[:_NAMED]) or 'none'}{more}"
    seen = f"Install steps see only these files of the commit: {named}."
    also = f" The commit also has {', '.join(absent)}." if absent else ""
    return (
        f"{message}. {seen}{also} If the step needs others, name them in "
        "subject.install.files ('.' for all), or move the step to subject.build."
    )


@contextlib.contextmanager
def find_changes(root: Path, name: str) -> Iterator[list[str]]:
    """Add the files of the install that the block changes to the list, and remove it then.

    If the agent is killed in the block, the install counts as incomplete.
    """
    changes: list[str] = []
    note = install_dir(root, name) / _EXPOSED
    note.touch()
    before = _read_states(root, name)
    try:
        yield changes
    finally:
        changes += sorted(dict(before.items() ^ _read_states(root, name).items()))
        if changes:
            remove_tree(install_dir(root, name))
        else:
            note.unlink()


def _read_states(root: Path, name: str) -> dict[str, tuple[int, ...]]:
    """Return a value for each installed file that differs if the file was written again.

    Empty if the folder is gone.
    """
    folder = get_content_folder(root, name)
    if not folder.is_dir():
        return {}
    states: dict[str, tuple[int, ...]] = {".": ()}
    for entry in iterate_files(folder):
        status = entry.status
        states[entry.name] = (
            status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns,
        )  # fmt: skip
    return states


def describe_changes(names: list[str]) -> str:
    """Return the message for build steps that changed these files of an install."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        "the build steps changed {installed}, which all commits with the same "
        f"subject.install.files share: {', '.join(names[:_NAMED])}{more}. Let them write below "
        "{tree}, or move the step to subject.install and add what it reads to its files ('.' for "
        "the whole commit)"
    )
