"""Another user of this machine, for tests of what runs as root starts as somebody else."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: On every system, and nobody's: without rights, and no test has to make it.
NOBODY = "nobody"
needs_root = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0,
    reason="only root can start programs as another user",
)


@contextmanager
def public_folder() -> Iterator[Path]:
    """A new folder that everybody may go through: pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="pitwall-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def public_python() -> str:
    """A Python that everybody can run; that of the tests may lie in root's home."""
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(path).exists() and all(_is_open(each) for each in _way_to(path)):
            return path
    pytest.fail("there is no Python that every user can run: install the system's python3")


def _way_to(path: str) -> list[Path]:
    real = Path(path).resolve()
    return [real, *real.parents, *Path(path).parents]


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o001)
