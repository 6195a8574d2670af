"""Another user of this machine, for tests of programs that root starts as another user."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: This user exists on every system and has no rights, so no test has to create one.
NOBODY = "nobody"
needs_root = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0,
    reason="only root can start programs as another user",
)


@contextmanager
def public_folder() -> Iterator[Path]:
    """Yield a new folder that everybody may enter: pytest's own folders are private."""
    folder = Path(tempfile.mkdtemp(prefix="pitwall-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def public_python() -> str:
    """Return a Python that everybody can run; that of the tests may be in root's home."""
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(path).exists() and all(_is_open(each) for each in _way_to(path)):
            return path
    pytest.fail("there is no Python that every user can run: install the system's python3")


def _way_to(path: str) -> list[Path]:
    real = Path(path).resolve()
    return [real, *real.parents, *Path(path).parents]


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o001)
