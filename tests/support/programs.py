"""Programs of the machine that tests run.

A test whose program is missing is skipped. The last lines of the run name what was not tested and
how to install it. With PITWALL_TEST_ALL=1, as in CI, such a test fails.
"""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

from devstack.programs import find_program
from devstack.tools.cache import find_cached
from devstack.tools.supplies import SUPPLIES

#: Program → how to install it (Debian's packages).
INSTALL = {
    "bash": "apt-get install bash",
    "cargo": "https://rustup.rs",
    "chromium": "apt-get install chromium",
    "curl": "apt-get install curl",
    "gcc": "apt-get install gcc",
    "ghc": "apt-get install ghc",
    "ghz": "make tools",
    "git": "apt-get install git",
    "go": "https://go.dev/doc/install",
    "gradle": "apt-get install gradle",
    "ip": "apt-get install iproute2",
    "h2load": "apt-get install nghttp2-client",
    "java": "apt-get install default-jdk-headless",
    "k6": "make tools",
    "nginx": "apt-get install nginx",
    "node": "apt-get install nodejs",
    "npm": "apt-get install npm",
    "oha": "make tools, or cargo install oha",
    "python3": "apt-get install python3",
    "python3.9": "pyenv install 3.9",
    "sshd": "apt-get install openssh-server",
    "wrk": "apt-get install wrk",
}
#: CI skips the tests of these: one server of one suite, or one example, does not justify packages
#: this large.
NOT_IN_CI = frozenset({"ghc", "gradle", "npm"})
_PREFIX = "missing program: "


def program(name: str) -> Path:
    """Return the path of a program. Skip the test if there is none; see `missing`."""
    return find_program(name) or missing(name)


def missing(name: str) -> NoReturn:
    """Skip the test because of a missing program, or fail it with PITWALL_TEST_ALL.

    The programs of NOT_IN_CI are not necessary there.
    """
    reason = f"{_PREFIX}{name}"
    if os.environ.get("PITWALL_TEST_ALL") and name not in NOT_IN_CI:
        pytest.fail(f"{reason} (install it: {INSTALL[name]})", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def summary(skipped: Sequence[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """Return a line for each missing program: how many tests were skipped, how to install it."""
    counts: Counter[str] = Counter()
    for report in skipped:
        _, _, reason = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, "")
        _, prefix, name = reason.partition(_PREFIX)
        if prefix:
            counts[name] += 1
    return [
        f"Not tested because {name} is missing: {count}. Install it: {INSTALL[name]}"
        for name, count in sorted(counts.items())
    ]


def tool(name: str) -> Path:
    """Return the program of a load tool; the test is skipped if there is none.

    It is the one of the installation (PITWALL_<NAME>), otherwise of the user's cache, otherwise of
    the PATH.
    """
    named = os.environ.get(f"PITWALL_{name.upper()}")
    path = named or _find_kept(name) or find_program(name)
    return Path(path) if path else missing(name)


@cache
def _find_kept(name: str) -> Path | None:
    """Look into the user's cache once: this reads the whole program and starts it."""
    return find_cached(SUPPLIES[name]) if name in SUPPLIES else None


_OLDEST = "3.9"


@cache
def oldest_python() -> str | None:
    """Return a working Python 3.9 from the PATH or a version manager; None if there is none."""
    return next((path for path in _candidates() if _runs(path)), None)


def _candidates() -> list[str]:
    named = shutil.which(f"python{_OLDEST}")
    # The name alone may be the empty shim of a manager: it is in `shims`, next to `versions`.
    roots = [Path.home() / ".pyenv", *([Path(named).parents[1]] if named else [])]
    kept = [path for root in roots for path in root.glob(f"versions/{_OLDEST}.*/bin/python")]
    return [*([named] if named else []), *map(str, sorted(kept))]


def _runs(path: str) -> bool:
    return subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0
