"""Put the files of commits into new folders: that of a build, and those of other repositories.

The other repositories of a build are next to its tree, in `repositories/<name>`. An install has its
own copies of those that its steps use, because it is shared by several builds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import AgentError, BuildFailed
from ..paths import build_dir, resolve_below
from ..step.plan import Source
from .archive import unpack
from .repositories import add_worktree

_REPOSITORIES = "repositories"


def check_out(root: Path, source: Source, folder: Path) -> None:
    """Write the files of a commit and of its submodules into the new `folder`.

    Raises BuildFailed if they are not available, or if a submodule has no place in the tree.
    """
    if source.problem is not None:
        raise BuildFailed(source.problem)
    try:
        if source.archive is not None:
            unpack(resolve_below(root, source.archive), folder)
        elif source.repository is not None:
            add_worktree(root, source.repository, source.commit, folder)
        for submodule in source.submodules:
            place = _make_room(folder, submodule.path)
            unpack(resolve_below(root, submodule.archive), place)
    except AgentError as error:
        raise BuildFailed(error.message) from error


def _make_room(tree: Path, name: str) -> Path:
    """Return the place of a submodule, after its empty folder was removed.

    A link of the commit can lead anywhere, so no folder on the way may be one.
    """
    place = resolve_below(tree, name)
    if Path(os.path.realpath(place)) != Path(os.path.realpath(tree)) / name:
        raise BuildFailed(f"the submodule {name}: a link of the commit is on the way to it")
    if os.path.lexists(place):
        try:
            place.rmdir()
        except OSError as error:
            raise BuildFailed(f"the submodule {name}: its folder is not empty") from error
    return place


def get_repository_folder(parent: Path, name: str) -> Path:
    """Return the folder of another repository in the folder of a build or install."""
    return parent / _REPOSITORIES / name


def build_repository_placeholders(root: Path, tree: str) -> dict[str, str]:
    """Return `<name>_tree` for each other repository of a build."""
    return list_folders(build_dir(root, tree))


def list_folders(parent: Path) -> dict[str, str]:
    """Return `<name>_tree` for each other repository in the folder of a build or install."""
    try:
        names: Sequence[str] = sorted(os.listdir(parent / _REPOSITORIES))
    except FileNotFoundError:
        names = ()
    return {f"{name}_tree": str(get_repository_folder(parent, name)) for name in names}


def check_out_repositories(root: Path, sources: Mapping[str, Source], parent: Path) -> list[Path]:
    """Check out each of `sources` by its name in the folder of a build or install."""
    folders = []
    for name, source in sources.items():
        folder = get_repository_folder(parent, name)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.parent.chmod(0o755)  # A separate user must reach what is in it.
        check_out(root, source, folder)
        folders.append(folder)
    return folders
