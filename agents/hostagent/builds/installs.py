"""The dependencies of a subject: one folder for all builds with the same recipe.

It is below `installs/`; its name is a hash of the recipe's key and of the contents of its files. A
note with that name is next to each tree that uses it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..errors import BuildFailed
from ..files import append_file, remove_tree, write_bytes
from ..paths import DONE, install_dir, read_install_name, resolve_below
from ..step.plan import Install
from .build_steps import BuildCommands

LOG = "install.log"


def install_name(install: Install, tree: Path) -> str:
    """Return the hash; BuildFailed if a file of the recipe is missing in the commit."""
    digest = hashlib.sha256(install.key.encode())
    for file in install.files:
        try:
            content = resolve_below(tree, file).read_bytes()
        except OSError as error:
            raise BuildFailed(f"install: the commit has no file {file}: {error}") from error
        digest.update(f"\n{file} {hashlib.sha256(content).hexdigest()}".encode())
    return digest.hexdigest()[:32]


def get_content_folder(root: Path, name: str) -> Path:
    """Return the value of `{installed}`."""
    return install_dir(root, name) / "installed"


def build_placeholders(root: Path, tree: str) -> dict[str, str]:
    """Return `installed`, if the tree has an install."""
    name = read_install_name(root, tree)
    return {} if name is None else {"installed": str(get_content_folder(root, name))}


def ensure_install(commands: BuildCommands, name: str) -> bool:
    """Run the install steps of the build unless the install exists; True if it existed.

    An interrupted install has no `.done` file and is done again. Its log is appended to that of
    the build. Raises BuildFailed with the error.
    """
    root, install = commands.step.root, commands.build.install
    assert install is not None
    install_folder = install_dir(root, name)
    if commands.sandbox.is_complete(install_folder / DONE):
        (install_folder / DONE).touch()  # prune reads it as the time of the last use
        append_file(install_folder / LOG, commands.log)
        return True
    remove_tree(install_folder)
    get_content_folder(root, name).mkdir(parents=True)
    commands.sandbox.give(get_content_folder(root, name))
    commands.sandbox.open(commands.build.tree)
    began = commands.log.stat().st_size
    commands.run("install", install.steps, install.timeout_s)
    (install_folder / LOG).write_bytes(commands.log.read_bytes()[began:])
    try:
        commands.sandbox.take_back(get_content_folder(root, name))
    except OSError as error:  # such as a path that is too long
        raise BuildFailed(f"the installed files cannot be stored: {error}") from error
    write_bytes(install_folder / DONE, commands.sandbox.owner_note)
    return False
