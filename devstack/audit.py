"""Look up all that is pinned among the known vulnerabilities: `python -m devstack.audit`.

Nothing is installed of what is looked up: the lock files name every version and its hashes. What
looks it up has an environment of its own (`requirements/audit.txt`).
"""

from __future__ import annotations

import subprocess
import sys

from devstack.lock import lock_sources
from devstack.places import CHECKOUT
from perf.harness.environments import venv_of

#: What runs on a server comes first; the others only test or measure it.
LOCKS = tuple(lock_sources())
#: What cannot be looked up is a failure: nothing would be known of it.
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
    program = venv_of("venv-audit", CHECKOUT / "requirements" / "audit.txt") / "pip-audit"
    status = 0
    for lock in LOCKS:
        print(f"{lock}:", file=sys.stderr, flush=True)
        argv = [str(program), *OPTIONS, "-r", lock]
        found = subprocess.run(argv, cwd=CHECKOUT).returncode
        status = status or found
    return status


if __name__ == "__main__":
    sys.exit(main())
