"""The verbs that look after the host: what it is, and what it keeps."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ..builds.repositories import forget_worktrees
from ..platform.facts import gather
from .prune import prune as remove_old


def facts(root: Path, _options: Namespace) -> dict[str, Any]:
    return {"facts": gather(root)}


def prune(root: Path, options: Namespace) -> dict[str, Any]:
    removed, left = remove_old(root, options.keep_days, options.limit_bytes)
    forget_worktrees(root)
    return {"removed": removed, "bytes": left}
