"""`python -m devstack.here ARGS`: `manage.py measure_here` with the load tools of this user."""

from __future__ import annotations

import os
import sys

from devstack.places import CHECKOUT
from devstack.tools.cache import find_cached
from devstack.tools.finding import find_on_path
from devstack.tools.supplies import SUPPLIES


def main() -> None:
    """Build no tool, since that takes minutes: the command names a missing one."""
    binaries = {
        supply.setting: str(binary)
        for supply in SUPPLIES.values()
        if supply.setting not in os.environ
        and (binary := find_cached(supply) or find_on_path(supply))
    }
    argv = [sys.executable, str(CHECKOUT / "manage.py"), "measure_here", *sys.argv[1:]]
    os.execve(sys.executable, argv, {**os.environ, **binaries})


if __name__ == "__main__":
    main()
