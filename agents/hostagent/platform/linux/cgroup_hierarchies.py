"""Find where control groups can be created on a Linux host: in cgroup v2 if possible, else v1.

Groups are created below the agent's group or a parent group, so that the agent's limits apply to
its children, too. Under systemd only the agent's own scope is used (systemd_scope.py): systemd
changes all other groups. All functions accept another root of the file system.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Optional

#: The start of the names of all scopes and groups of the agent.
PREFIX = "pitwall"
CONTROLLERS = ("cpuset", "cpu", "memory", "io", "pids")


class CgroupHierarchy(NamedTuple):
    """Where groups can be created: the parent folder for each available controller."""

    version: int
    folders: Mapping[str, Path]

    @property
    def mechanism(self) -> str:
        return f"cgroup{self.version}"


def find_hierarchy(system: Path = Path("/")) -> Optional[CgroupHierarchy]:
    """Return the hierarchy below the file system `system`; None if no group can be created."""
    mounts = _parse_mounts(read_text(system / "proc/self/mounts"))
    own = _parse_own_groups(read_text(system / "proc/self/cgroup"))
    return _find_v2(system, mounts, own) or _find_v1(system, mounts, own)


def _find_v2(
    system: Path, mounts: Mapping[str, str], own: Mapping[str, str]
) -> Optional[CgroupHierarchy]:
    """Return the nearest group, from the agent's upwards, that can have groups with controllers."""
    if "cgroup2" not in mounts:
        return None
    top = system / mounts["cgroup2"].lstrip("/")
    here = _group_folder(top, own.get("", "/"))
    if here.name.startswith(f"{PREFIX}-") and not is_scope(here.name):
        here = here.parent  # the agent has moved to a subgroup
    if is_systemd_running(system) and not is_scope(here.name):
        return None
    for folder in (here, *here.parents):
        offered = read_text(folder / "cgroup.controllers").split()
        folders = {name: folder for name in CONTROLLERS if name in offered}
        if {"cpu", "memory"} <= set(folders) and _can_delegate(folder):
            return CgroupHierarchy(2, folders)
        if folder == top:
            break
    return None


def is_scope(name: str) -> bool:
    return name.startswith(f"{PREFIX}-") and name.endswith(".scope")


def is_systemd_running(system: Path = Path("/")) -> bool:
    """Return whether systemd manages the groups of cgroup v2 on this machine."""
    unified = system / "sys/fs/cgroup/cgroup.controllers"
    return (system / "run/systemd/system").is_dir() and unified.exists()


def read_own_group(system: Path = Path("/")) -> str:
    """Return the path of the agent's group in cgroup v2; "" if there is none."""
    return _parse_own_groups(read_text(system / "proc/self/cgroup")).get("", "")


def _can_delegate(folder: Path) -> bool:
    """Return whether it is writable and has no other processes, which only the root may have."""
    files = (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control")
    if not all(os.access(path, os.W_OK) for path in files):
        return False
    is_root = not (folder / "cgroup.type").exists()
    inside = set(read_text(folder / "cgroup.procs").split())
    return is_root or inside <= {str(os.getpid())}


def _find_v1(
    system: Path, mounts: Mapping[str, str], own: Mapping[str, str]
) -> Optional[CgroupHierarchy]:
    folders = {
        name: _group_folder(system / mounts[name].lstrip("/"), own.get(name, "/"))
        for name in CONTROLLERS
        if name in mounts
    }
    writable = {name: path for name, path in folders.items() if os.access(path, os.W_OK)}
    return CgroupHierarchy(1, writable) if writable else None


def _group_folder(top: Path, group: str) -> Path:
    """Return the agent's group; in a container with its root mounted as `top` it may not exist."""
    folder = top / group.lstrip("/")
    return folder if ".." not in folder.parts and folder.is_dir() else top


def list_own_and_parent_groups(controller: str, system: Path = Path("/")) -> list[Path]:
    """Return the agent's group of a controller and all its visible parents, readable or not."""
    mounts = _parse_mounts(read_text(system / "proc/self/mounts"))
    own = _parse_own_groups(read_text(system / "proc/self/cgroup"))
    kind = controller if controller in mounts else "cgroup2"
    if kind not in mounts:
        return []
    top = system / mounts[kind].lstrip("/")
    here = _group_folder(top, own.get(controller if kind == controller else "", "/"))
    return [folder for folder in (here, *here.parents) if folder == top or top in folder.parents]


def _parse_mounts(text: str) -> dict[str, str]:
    """Return mount points by "cgroup2" and by the controllers of v1, from /proc/self/mounts."""
    mounts: dict[str, str] = {}
    for line in text.splitlines():
        _device, point, kind, options = line.split()[:4]
        if kind == "cgroup2":
            mounts.setdefault(kind, point)
        elif kind == "cgroup":
            mounts.update({name: point for name in options.split(",") if name in CONTROLLERS})
    return mounts


def _parse_own_groups(text: str) -> dict[str, str]:
    """Return our group by controller, "" for v2, from /proc/self/cgroup."""
    groups: dict[str, str] = {}
    for line in text.splitlines():
        _number, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def read_text(path: Path) -> str:
    """Return the stripped text of a file; "" if it cannot be read."""
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""
