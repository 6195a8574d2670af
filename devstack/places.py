"""Paths in a checkout and in the user's cache.

The bootstrap imports this module too, and may run on an old Python: keep it simple.
"""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
VENV = CHECKOUT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STATE = CHECKOUT / ".pitwall"


def get_tools_cache() -> Path:
    """Return the user's folder of tools that every checkout shares; it need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore a relative path.
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "pitwall" / "tools"
