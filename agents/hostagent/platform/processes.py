"""Child processes that never outlive us, by the means of this system.

The modules are posix_processes.py and experimental/windows_processes.py.

Both offer `Child`, `adopt_orphans`, `kill_descendants` and `kill_marked`. What a
supervisor that was killed leaves behind carries MARK in its environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

if sys.platform == "win32":
    from .experimental import windows_processes as _this
else:
    from . import posix_processes as _this

#: Names the step directory in the environment of everything that a supervisor starts.
MARK = "PITWALL_STEP"

Child = _this.Child
adopt_orphans = _this.adopt_orphans
kill_descendants = _this.kill_descendants

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
_KEPT_ON_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE")


def child_environment(
    step: Path, extra: Mapping[str, str], path: Sequence[str] = ()
) -> dict[str, str]:
    """The scrubbed environment of a child: nothing of ours but what every program needs.

    The folders `path` come first on its PATH, unless `extra` has a PATH of its own.
    """
    kept = _KEPT + (_KEPT_ON_WINDOWS if os.name == "nt" else ())
    own = {name: os.environ[name] for name in kept if name in os.environ}
    if path:
        own["PATH"] = os.pathsep.join([*path, own.get("PATH", os.defpath)])
    return {**own, **extra, MARK: str(step)}


def kill_marked(step: Path) -> bool:
    """Kill what a dead supervisor of `step` left behind; True if there was anything."""
    return _this.kill_marked(f"{MARK}={step}")
