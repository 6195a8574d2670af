"""The verb that makes the host ready for a new job, in one call: the lease is ours."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from . import status, stop, upkeep
from .repositories import commits

#: The disk is measured this often; a large work directory takes a while to add up.
PRUNE_EVERY_S = 600.0
STAMP = "pruned"


def ready(root: Path, options: Namespace) -> dict[str, Any]:
    """End what is left over, prune now and then, and tell the facts and what is there."""
    stopped = stop.stop_all(root, options)["stopped"]
    if _is_due(root / STAMP):
        upkeep.prune(root, options)
        (root / STAMP).touch()
    there = commits(root, options) if options.commits else {"present": {}}
    return {
        "stopped": stopped,
        **upkeep.facts(root, options),
        **status.has(root, options),
        "commits": there["present"],
    }


def _is_due(stamp: Path) -> bool:
    try:
        return time.time() - stamp.stat().st_mtime > PRUNE_EVERY_S
    except FileNotFoundError:
        return True
