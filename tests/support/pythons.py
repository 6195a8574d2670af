"""Find the oldest Python that the agent and the command line support."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

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
