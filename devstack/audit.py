"""Check all pinned packages for known vulnerabilities: `python -m devstack.audit`.

The packages are not installed: the lock files name every version with its hashes. The checker has a
separate environment (`requirements/audit.txt`).
"""

from __future__ import annotations

import subprocess
import sys

from devstack.lock import lock_sources
from devstack.places import CHECKOUT
from perf.harness.environments import build_venv

#: Packages of a server come first; the others only test or measure it.
LOCKS = tuple(lock_sources())
#: A failed look-up is a failure, since the result is unknown.
OPTIONS = (
    "--require-hashes",
    "--disable-pip",
    "--strict",
    "--progress-spinner",
    "off",
    "--desc",
    "off",
)


def main() -> int:
    program = build_venv("venv-audit", CHECKOUT / "requirements" / "audit.txt") / "pip-audit"
    status = 0
    for lock in LOCKS:
        print(f"{lock}:", file=sys.stderr, flush=True)
        argv = [str(program), *OPTIONS, "-r", lock]
        returncode = subprocess.run(argv, cwd=CHECKOUT).returncode
        status = status or returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
