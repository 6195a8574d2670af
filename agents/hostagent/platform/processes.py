"""Child processes that never outlive the supervisor.

The implementations are posix_processes.py and experimental/windows_processes.py.

Both have `Child`, `adopt_orphans`, `kill_descendants`, `kill_marked` and the functions of helpers.
All processes that a supervisor starts have MARK in their environment, so that its orphans can be
found. Helpers are no such processes: they run code of the agent.
"""

from __future__ import annotations

import os
import re
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
describe_unkillable = _implementation.describe_unkillable

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
#: For builds, which load packages: proxies, certificates and indexes of packages.
_KEPT_FOR_BUILDS = (
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("NODE_EXTRA_CA_CERTS", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "npm_config_registry"),
    *("GOPROXY", "GONOSUMDB", "GOSUMDB"),
)
_KEPT_ON_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE")


#: In an address such as http://user:password@proxy:3128.
_PASSWORD = re.compile(r"//[^/\s]*@")


def build_child_environment(
    step: Path, extra: Mapping[str, str], path: Sequence[str] = (), *, for_build: bool = False
) -> dict[str, str]:
    """Return the environment of a child: `extra` and the few variables of ours that every program
    needs.

    The folders `path` come first on its PATH, unless `extra` has a PATH. `for_build`: it also gets
    the proxies and package indexes of the login, except those with a password in them.
    """
    kept = _KEPT + (_KEPT_ON_WINDOWS if os.name == "nt" else ())
    own = {name: os.environ[name] for name in kept if name in os.environ}
    if for_build:
        own.update(_list_build_variables())
    if path:
        own["PATH"] = os.pathsep.join([*path, own.get("PATH", os.defpath)])
    return {**own, **extra, MARK: str(step)}


def _list_build_variables() -> dict[str, str]:
    known = {name: os.environ[name] for name in _KEPT_FOR_BUILDS if name in os.environ}
    return {name: value for name, value in known.items() if not _PASSWORD.search(value)}


def kill_marked(step: Path) -> bool:
    """Kill the orphans of a dead supervisor of `step`; True if there was anything."""
    return _implementation.kill_marked(f"{MARK}={step}")


def describe_marked(step: Path) -> str:
    """Return which processes of `step` exist after they were killed; "" if none does."""
    return _implementation.describe_marked(f"{MARK}={step}")
