"""The load tools that tests run for real."""

import os
from pathlib import Path

from devstack.tools.cache import cached
from devstack.tools.supplies import SUPPLIES
from tests.support.programs import find_program, missing


def tool(name: str) -> Path:
    """Return the program of a load tool; the test is skipped if there is none.

    It is the one of the installation (PITWALL_<NAME>), otherwise of the user's cache, otherwise of
    the PATH.
    """
    named = os.environ.get(f"PITWALL_{name.upper()}")
    kept = cached(SUPPLIES[name]) if name in SUPPLIES else None
    found = named or kept or find_program(name)
    return Path(found) if found else missing(name)
