"""The commands `facts` and `prepare`, which prepares a host for a new job in one call."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Optional

from ..machine_lock import check_machine_lock
from ..platform import facts as host_facts
from ..platform.linux import mounts
from ..reservation import read_reservation, write_script
from . import status, stop


def facts(root: Path, options: Namespace) -> dict[str, Any]:
    mounts.require_local_disk(root)
    _search_first(options.folders)
    return {"facts": host_facts.gather_facts(root), "reservation": _inspect_reservation(root)}


def prepare(root: Path, options: Namespace) -> dict[str, Any]:
    """Kill orphans, and return facts, commits and files; the lease must be ours.

    Busy if a job of another host of Pitwall uses this work directory or this machine.
    """
    mounts.require_local_disk(root)
    _search_first(options.folders)
    stop.require_own_steps(root, options.owner)
    stopped = stop.stop_all(root, options)["stopped"]
    if options.machine_lock:
        check_machine_lock()
    commits = {}
    if options.commits:
        # It is loaded only here: most hosts need none of it.
        repositories = import_module("..builds.repositories", __package__)
        commits = repositories.commits(root, options)["present"]
    return {
        "stopped": stopped,
        "facts": host_facts.gather_facts(root, options.programs),
        **status.has(root, options),
        "commits": commits,
        "reservation": _inspect_reservation(root),
    }


def _search_first(folders: Sequence[str]) -> None:
    """Let programs be found in these folders before those of the login."""
    path = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = os.pathsep.join([*folders, path])


def _inspect_reservation(root: Path) -> Optional[dict[str, Any]]:
    """Return the present reservation, and keep the command that makes one up to date."""
    write_script(root)
    reservation = read_reservation(root)
    return reservation._asdict() if reservation else None
