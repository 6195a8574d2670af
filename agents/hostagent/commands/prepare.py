"""The commands `facts` and `prepare`, which prepares a host for a new job in one call."""

from __future__ import annotations

import time
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..platform import facts as host_facts
from . import status, stop

#: The minimum interval; measuring a large work directory takes a while.
PRUNE_EVERY_S = 600.0
STAMP = "pruned"


def facts(root: Path, _options: Namespace) -> dict[str, Any]:
    return {"facts": host_facts.gather_facts(root)}


def prepare(root: Path, options: Namespace) -> dict[str, Any]:
    """Kill orphans, prune if due, and return facts, commits and files; the lease must be ours."""
    stopped = stop.stop_all(root, options)["stopped"]
    if _is_due(root / STAMP):
        _import_module(".prune").prune(root, options)
        (root / STAMP).touch()
    commits = {}
    if options.commits:
        commits = _import_module("..builds.repositories").commits(root, options)["present"]
    return {
        "stopped": stopped,
        "facts": host_facts.gather_facts(root, options.programs),
        **status.has(root, options),
        "commits": commits,
    }


def _import_module(name: str) -> Any:
    """Load a module only when needed: most jobs find a prepared host."""
    return import_module(name, __package__)


def _is_due(stamp: Path) -> bool:
    try:
        return time.time() - stamp.stat().st_mtime > PRUNE_EVERY_S
    except FileNotFoundError:
        return True
