"""Find a tool, or get it."""

from __future__ import annotations

import shutil
from pathlib import Path

from devstack.filelock import wait_for_lock
from devstack.tools.builds import build_with_cargo, build_with_go
from devstack.tools.cache import clear_staging, find_cached, get_tool_folder
from devstack.tools.releases import download_release
from devstack.tools.supplies import Supply


def find(supply: Supply) -> Path:
    """Return the path of a suitable binary; this may build one, which takes minutes.

    Raise ToolError if there is none and it cannot be built.
    """
    binary = supply.named() or find_cached(supply) or find_on_path(supply)
    if binary is not None:
        return binary
    folder = get_tool_folder(supply)
    lock = folder.with_name(folder.name + ".lock")
    with wait_for_lock(lock, f"pitwall: another process gets {supply.name}; waiting for it."):
        clear_staging(supply)
        return find_cached(supply) or _fetch_tool(supply)


def find_on_path(supply: Supply) -> Path | None:
    path = shutil.which(supply.name)
    return Path(path).absolute() if path and supply.is_fit(Path(path)) else None


def _fetch_tool(supply: Supply) -> Path:
    if supply.name == "oha":
        return download_release(supply) or build_with_cargo(supply)
    return build_with_go(supply)
