"""Put the files of commits into new folders: that of a build, and those of other repositories.

The other repositories of a build are next to its tree, in `repositories/<name>`. An install has its
own copies of those that its steps use, because it is shared by several builds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import AgentError, BuildFailed
from ..files import remove_tree
from ..paths import build_dir, resolve_below
from ..step.plan import Source
from .archive import unpack
from .repositories import add_worktree, ignore_changes

_REPOSITORIES = "repositories"


def check_out(root: Path, source: Source, folder: Path) -> None:
    """Write the files of a commit and of its submodules into the new `folder`.

    Raises BuildFailed if they are not available, or if a submodule or a file of Git LFS has no
    place in the tree.
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
        if source.lfs_files is not None:
            names = _replace_pointers(resolve_below(root, source.lfs_files), folder)
            if source.repository is not None:
                own = [name for name in names if not _is_in_submodule(source, name)]
                ignore_changes(root, source.repository, folder, own)
    except AgentError as error:
        raise BuildFailed(error.message) from error


def _make_room(tree: Path, name: str) -> Path:
    """Return the place of a submodule, after its empty folder was removed.

    A link of the commit can lead anywhere, so no folder on the way may be one.
    """
    place = resolve_below(tree, name)
    if _is_behind_link(tree, name):
        raise BuildFailed(f"the submodule {name}: a link of the commit is on the way to it")
    if os.path.lexists(place):
        try:
            place.rmdir()
        except OSError as error:
            raise BuildFailed(f"the submodule {name}: its folder is not empty") from error
    return place


def _is_behind_link(tree: Path, name: str) -> bool:
    """Return whether `name` in a tree is a link, or below one."""
    return Path(os.path.realpath(tree / name)) != Path(os.path.realpath(tree)) / name


def _replace_pointers(archive: Path, tree: Path) -> list[str]:
    """Move the files of an archive to the places of their pointers; return their paths."""
    unpacked = tree.with_name(f"{tree.name}.lfs")
    unpack(archive, unpacked)
    try:
        names = [
            (Path(folder) / name).relative_to(unpacked).as_posix()
            for folder, _, files in os.walk(unpacked)
            for name in files
        ]
        for name in names:
            if _is_behind_link(tree, name) or not (tree / name).is_file():
                raise BuildFailed(f"{name} is in Git LFS, but is no file of the commit")
            if (unpacked / name).is_symlink():
                raise BuildFailed(f"{archive.name}: {name} is a link")
            os.replace(unpacked / name, tree / name)
    finally:
        remove_tree(unpacked)
    return names


def _is_in_submodule(source: Source, name: str) -> bool:
    return any(name.startswith(f"{each.path}/") for each in source.submodules)


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
