"""Where the programs of a host are: on the PATH, or in the folders of version managers.

Only an interactive login adds these folders to the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

#: The folder of Go's own installer, and that of Homebrew on Linux.
GO = Path("/usr/local/go/bin")
HOMEBREW = Path("/home/linuxbrew/.linuxbrew/bin")
#: Below the home, a folder for each version: of pyenv, nvm, fnm, Volta, rbenv, asdf, mise, SDKMAN.
_FOLDERS_BY_VERSION = (
    ".pyenv/versions/*/bin",
    ".nvm/versions/node/*/bin",
    ".local/share/fnm/node-versions/*/installation/bin",
    ".volta/tools/image/node/*/bin",
    ".rbenv/versions/*/bin",
    ".asdf/installs/*/*/bin",
    ".local/share/mise/installs/*/*/bin",
    ".sdkman/candidates/*/*/bin",
)
#: Next to the folder of the shims of a version manager, wherever it is: pyenv, rbenv; asdf, mise.
_FOLDERS_NEXT_TO_SHIMS = ("versions/*/bin", "installs/*/*/bin")
#: Below the home, of rustup, Bun, Deno, Go, pip and pipx, conda.
_OTHER_FOLDERS = (
    ".cargo/bin",
    ".bun/bin",
    ".deno/bin",
    "go/bin",
    ".local/bin",
    "miniconda3/bin",
    "miniforge3/bin",
    "anaconda3/bin",
)
#: A version manager with more is not searched completely: each search opens all folders.
_MOST_FOLDERS = 200
#: Programs in such a folder start the selected version, if any: prefer the versions themselves.
#: A shim is a script of the version manager and needs some 0.2 s of CPU time.
_SHIMS = "shims"


class ProgramLocation(NamedTuple):
    """`outside_path`: a shell would find another program by its name, or none."""

    path: str
    outside_path: bool


def locate_programs(
    names: Iterable[str], *, on_path_only: Collection[str]
) -> dict[str, ProgramLocation]:
    """Return the programs that exist. Those of `on_path_only` are not searched in other folders."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    real = [folder for folder in folders if os.path.basename(folder) != _SHIMS]
    shims = [Path(folder) for folder in folders if os.path.basename(folder) == _SHIMS]
    other_path = os.pathsep.join([*real, *_list_version_manager_folders(shims)])
    locations = {}
    for name in names:
        first = shutil.which(name)
        other = None
        if name not in on_path_only and (first is None or is_shim(first)):
            other = shutil.which(name, path=other_path)
        if other or first:
            locations[name] = ProgramLocation(other or first or "", bool(other))
    return locations


def _list_version_manager_folders(shims: Sequence[Path]) -> list[str]:
    """Return the program folders of version managers, newer versions first.

    `shims`: their folders on the PATH. A version manager may be installed outside of the home.
    """
    home = Path.home()
    patterns = [(folder.parent, each) for folder in shims for each in _FOLDERS_NEXT_TO_SHIMS]
    patterns += [(home, each) for each in _FOLDERS_BY_VERSION]
    folders: list[Path] = []
    for root, pattern in patterns:
        found = [folder for folder in root.glob(pattern) if not folder.parent.is_symlink()]
        folders += sorted(found, key=partial(_parse_version, root), reverse=True)
    # Shims in the home lead to the same folders as the patterns of the home.
    versions = list(dict.fromkeys(folders))[:_MOST_FOLDERS]
    others = [home / name for name in _OTHER_FOLDERS]
    return [str(folder) for folder in (*versions, *others, GO, HOMEBREW)]


def _parse_version(root: Path, folder: Path) -> list[int]:
    """Return the numbers of a version such as `v20.11.1`, the only part of the path with digits."""
    return [int(part) for part in re.findall(r"\d+", str(folder.relative_to(root)))]


def is_shim(path: str) -> bool:
    return os.path.basename(os.path.dirname(path)) == _SHIMS
