"""The load tools that tests run for real."""

import os
from pathlib import Path

from devstack.tools.cache import cached
from devstack.tools.supplies import SUPPLIES
from tests.support.programs import find_program, missing


def tool(name: str) -> Path:
    """The program of a load tool; the test is skipped where there is none.

    As the installation has it (PITWALL_<NAME>), else of the user's cache, else of the PATH.
    """
    named = os.environ.get(f"PITWALL_{name.upper()}")
    kept = cached(SUPPLIES[name]) if name in SUPPLIES else None
    found = named or kept or find_program(name)
    return Path(found) if found else missing(name)
