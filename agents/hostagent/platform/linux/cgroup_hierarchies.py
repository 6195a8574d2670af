"""Where on a Linux host control groups can be made: in cgroup v2 where it offers them, else v1.

Groups are made below our own group or one above it, so that limits set on us hold for our
children, too. A fake root of the file system can be given everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Optional

CONTROLLERS = ("cpuset", "cpu", "memory", "pids")


class Place(NamedTuple):
    """Where groups can be made: the parent folder for each controller that is to be had."""

    version: int
    folders: Mapping[str, Path]

    @property
    def mechanism(self) -> str:
        return f"cgroup{self.version}"


def find(system: Path = Path("/")) -> Optional[Place]:
    """The place to use below the file system `system`; None where no group can be made."""
    mounts = _mounts(text_of(system / "proc/self/mounts"))
    own = _own_groups(text_of(system / "proc/self/cgroup"))
    return _second(system, mounts, own) or _first(system, mounts, own)


def _second(system: Path, mounts: Mapping[str, str], own: Mapping[str, str]) -> Optional[Place]:
    """v2: the nearest of our own group and those above it that may have groups with controllers."""
    if "cgroup2" not in mounts:
        return None
    top = system / mounts["cgroup2"].lstrip("/")
    here = _inside(top, own.get("", "/"))
    for folder in (here, *here.parents):
        offered = text_of(folder / "cgroup.controllers").split()
        folders = {name: folder for name in CONTROLLERS if name in offered}
        if {"cpu", "memory"} <= set(folders) and _can_divide(folder):
            return Place(2, folders)
        if folder == top:
            break
    return None


def _can_divide(folder: Path) -> bool:
    """Writable, and not one that holds processes: only the root may hold both them and groups."""
    files = (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control")
    if not all(os.access(path, os.W_OK) for path in files):
        return False
    is_root = not (folder / "cgroup.type").exists()
    inside = set(text_of(folder / "cgroup.procs").split())
    return is_root or inside <= {str(os.getpid())}


def _first(system: Path, mounts: Mapping[str, str], own: Mapping[str, str]) -> Optional[Place]:
    found = {
        name: _inside(system / mounts[name].lstrip("/"), own.get(name, "/"))
        for name in CONTROLLERS
        if name in mounts
    }
    writable = {name: path for name, path in found.items() if os.access(path, os.W_OK)}
    return Place(1, writable) if writable else None


def _inside(top: Path, group: str) -> Path:
    """Our own group; in a container whose root is mounted as `top` its path may lead nowhere."""
    folder = top / group.lstrip("/")
    return folder if ".." not in folder.parts and folder.is_dir() else top


def above_us(controller: str, system: Path = Path("/")) -> list[Path]:
    """Our own group of a controller and all above it that can be seen, readable or not."""
    mounts = _mounts(text_of(system / "proc/self/mounts"))
    own = _own_groups(text_of(system / "proc/self/cgroup"))
    kind = controller if controller in mounts else "cgroup2"
    if kind not in mounts:
        return []
    top = system / mounts[kind].lstrip("/")
    here = _inside(top, own.get(controller if kind == controller else "", "/"))
    return [folder for folder in (here, *here.parents) if folder == top or top in folder.parents]


def _mounts(text: str) -> dict[str, str]:
    """Mount points by "cgroup2" and by the controllers of v1, from /proc/self/mounts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _device, point, kind, options = line.split()[:4]
        if kind == "cgroup2":
            found.setdefault(kind, point)
        elif kind == "cgroup":
            found.update({name: point for name in options.split(",") if name in CONTROLLERS})
    return found


def _own_groups(text: str) -> dict[str, str]:
    """Our group by controller, "" for v2, from /proc/self/cgroup."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _number, controllers, path = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def text_of(path: Path) -> str:
    """The text of a file without the white space around it; nothing where it cannot be read."""
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""
