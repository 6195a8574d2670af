"""The user's cache of tools: each binary next to its SHA-256, in a folder named after the build."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from devstack.places import get_tools_cache
from devstack.tools.supplies import Supply, ToolError


def get_tool_folder(supply: Supply) -> Path:
    return get_tools_cache() / supply.label


def find_cached(supply: Supply) -> Path | None:
    """Return the cached binary if it is unchanged, byte for byte."""
    binary = get_tool_folder(supply) / supply.name
    try:
        recorded = _record(binary).read_text().split()[0]
        whole = recorded == compute_digest(binary)
    except (OSError, IndexError):
        return None
    return binary if whole and supply.is_fit(binary) else None


def keep(supply: Supply, binary: Path) -> Path:
    """Move a binary into the cache; the digest is last, so that a half move does not count."""
    target = get_tool_folder(supply) / supply.name
    target.parent.mkdir(parents=True, exist_ok=True)
    binary.chmod(0o755)
    _record(target).unlink(missing_ok=True)
    binary.replace(target)
    _record(target).write_text(f"{compute_digest(target)}  {supply.name}\n")
    if not supply.is_fit(target):
        raise ToolError(
            f"{target} does not run on this machine. Set {supply.setting} to one that does."
        )
    return target


def open_staging(supply: Supply) -> tempfile.TemporaryDirectory[str]:
    """Return a folder on the file system of the cache; its content is removed with the block."""
    get_tools_cache().mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix=_build_staging_prefix(supply), dir=get_tools_cache())


def clear_staging(supply: Supply) -> None:
    """Remove leftovers of killed builds; only for the holder of the tool's lock."""
    for left in get_tools_cache().glob(f"{_build_staging_prefix(supply)}*"):
        shutil.rmtree(left, ignore_errors=True)


def compute_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _record(binary: Path) -> Path:
    return binary.with_name(f"{binary.name}.sha256")


def _build_staging_prefix(supply: Supply) -> str:
    return f"{supply.label}-staging-"
