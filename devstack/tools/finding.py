"""Find a tool, or get it."""

from __future__ import annotations

import shutil
from pathlib import Path

from devstack.filelock import waiting_for_lock
from devstack.tools.builds import built_by_cargo, built_by_go
from devstack.tools.cache import cached, clear_staging, folder_of
from devstack.tools.releases import downloaded
from devstack.tools.supplies import Supply


def find(supply: Supply) -> Path:
    """Return the path of a suitable binary; this may build one, which takes minutes.

    Raise ToolError if there is none and it cannot be built.
    """
    found = supply.named() or cached(supply) or on_path(supply)
    if found is not None:
        return found
    folder = folder_of(supply)
    lock = folder.with_name(folder.name + ".lock")
    with waiting_for_lock(lock, f"pitwall: another process gets {supply.name}; waiting for it."):
        clear_staging(supply)
        return cached(supply) or _got(supply)


def on_path(supply: Supply) -> Path | None:
    found = shutil.which(supply.name)
    return Path(found).absolute() if found and supply.is_fit(Path(found)) else None


def _got(supply: Supply) -> Path:
    if supply.name == "oha":
        return downloaded(supply) or built_by_cargo(supply)
    return built_by_go(supply)
