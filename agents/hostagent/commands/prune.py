"""The command `prune`: remove files of old jobs from the host."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ..builds.repositories import forget_worktrees
from ..old_files import remove_old_items


def prune(root: Path, options: Namespace) -> dict[str, Any]:
    """Return {"removed": [path], "bytes": size of what is left}."""
    removed, left = remove_old_items(root, options.keep_days, options.limit_bytes)
    forget_worktrees(root)
    return {"removed": removed, "bytes": left}
