"""Child processes that never outlive the supervisor.

The implementations are posix_processes.py and experimental/windows_processes.py.

Both have `Child`, `adopt_orphans`, `kill_descendants`, `kill_marked` and the functions of helpers.
All processes that a supervisor starts have MARK in their environment, so that its orphans can be
found. Helpers are no such processes: they run code of the agent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

if sys.platform == "win32":
    from .experimental import windows_processes as _implementation
else:
    from . import posix_processes as _implementation

#: The environment variable with the step directory.
MARK = "PITWALL_STEP"

Child = _implementation.Child
adopt_orphans = _implementation.adopt_orphans
kill_descendants = _implementation.kill_descendants
fork_helper = _implementation.fork_helper
await_helper = _implementation.await_helper
list_helpers = _implementation.list_helpers

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
_KEPT_ON_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE")


def build_child_environment(
    step: Path, extra: Mapping[str, str], path: Sequence[str] = ()
) -> dict[str, str]:
    """Return the environment of a child: `extra` and the few variables of ours that every program
    needs.

    The folders `path` come first on its PATH, unless `extra` has a PATH.
    """
    kept = _KEPT + (_KEPT_ON_WINDOWS if os.name == "nt" else ())
    own = {name: os.environ[name] for name in kept if name in os.environ}
    if path:
        own["PATH"] = os.pathsep.join([*path, own.get("PATH", os.defpath)])
    return {**own, **extra, MARK: str(step)}


def kill_marked(step: Path) -> bool:
    """Kill the orphans of a dead supervisor of `step`; True if there was anything."""
    return _implementation.kill_marked(f"{MARK}={step}")
