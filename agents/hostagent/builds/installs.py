"""What a subject needs beside its source: a folder of its own, once for all with the same recipe.

It lies below `installs/`, named by the recipe's key and the contents of the files that it reads. A
tree that uses it has a note of that name beside it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..errors import BuildFailed
from ..files import append_file, remove_tree, write_bytes
from ..paths import DONE, below, install_dir, installed_for
from ..step.plan import Install
from .build_steps import Commands

LOG = "install.log"


def name_of(install: Install, tree: Path) -> str:
    """BuildFailed where the commit has not all of the files that the recipe reads."""
    digest = hashlib.sha256(install.key.encode())
    for file in install.files:
        try:
            content = below(tree, file).read_bytes()
        except OSError as error:
            raise BuildFailed(f"install: the commit has no file {file}: {error}") from error
        digest.update(f"\n{file} {hashlib.sha256(content).hexdigest()}".encode())
    return digest.hexdigest()[:32]


def folder(root: Path, name: str) -> Path:
    """What `{installed}` stands for."""
    return install_dir(root, name) / "installed"


def words(root: Path, tree: str) -> dict[str, str]:
    """`installed`, where something is."""
    name = installed_for(root, tree)
    return {} if name is None else {"installed": str(folder(root, name))}


def ensure(commands: Commands, name: str) -> bool:
    """Make what the build has to have installed unless it is there; True if it was.

    One that was cut short has no mark and is made anew. Its log comes to the end of the build's.
    BuildFailed says what went wrong.
    """
    root, install = commands.step.root, commands.build.install
    assert install is not None
    place = install_dir(root, name)
    if commands.grounds.made(place / DONE):
        (place / DONE).touch()  # prune goes by the last use
        append_file(place / LOG, commands.log)
        return True
    remove_tree(place)
    folder(root, name).mkdir(parents=True)
    commands.grounds.give(folder(root, name))
    commands.grounds.open(commands.build.tree)
    began = commands.log.stat().st_size
    commands.run("install", install.steps, install.timeout_s)
    (place / LOG).write_bytes(commands.log.read_bytes()[began:])
    try:
        commands.grounds.keep(folder(root, name))
    except OSError as error:  # such as names of folders in folders, longer than a path may be
        raise BuildFailed(f"what was installed cannot be kept: {error}") from error
    write_bytes(place / DONE, commands.grounds.mark)
    return False
