"""The load tools that tests run for real."""

import os
import shutil
from pathlib import Path

import pytest

from devstack.tools.cache import cached
from devstack.tools.supplies import SUPPLIES

PACKAGES = {"wrk": "wrk", "h2load": "nghttp2-client"}


def tool(name: str) -> Path:
    """The program of a load tool; the test fails with what to do where there is none.

    As the installation has it (PITWALL_<NAME>), else of the user's cache, else of the PATH.
    """
    named = os.environ.get(f"PITWALL_{name.upper()}")
    kept = cached(SUPPLIES[name]) if name in SUPPLIES else None
    found = named or kept or shutil.which(name)
    if not found:
        how = f"apt-get install {PACKAGES[name]}" if name in PACKAGES else "make tools"
        pytest.fail(f"this test runs {name}, and there is none on this machine: {how}")
    return Path(found)
