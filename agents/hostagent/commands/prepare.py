"""The verb that makes the host ready for a new job, in one call: the lease is ours."""

from __future__ import annotations

import time
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..platform import facts as host_facts
from . import status, stop

#: The disk is measured this often; a large work directory takes a while to add up.
PRUNE_EVERY_S = 600.0
STAMP = "pruned"


def facts(root: Path, _options: Namespace) -> dict[str, Any]:
    return {"facts": host_facts.gather_facts(root)}


def ready(root: Path, options: Namespace) -> dict[str, Any]:
    """End what is left over, prune now and then, and tell the facts and what is there."""
    stopped = stop.stop_all(root, options)["stopped"]
    if _is_due(root / STAMP):
        _module(".prune").prune(root, options)
        (root / STAMP).touch()
    there = {}
    if options.commits:
        there = _module("..builds.repositories").commits(root, options)["present"]
    return {
        "stopped": stopped,
        "facts": host_facts.gather_facts(root, options.programs),
        **status.has(root, options),
        "commits": there,
    }


def _module(name: str) -> Any:
    """Loaded where it is needed: most jobs find a host that is ready."""
    return import_module(name, __package__)


def _is_due(stamp: Path) -> bool:
    try:
        return time.time() - stamp.stat().st_mtime > PRUNE_EVERY_S
    except FileNotFoundError:
        return True
