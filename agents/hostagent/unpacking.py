"""Unpack the agent's zip file next to it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zipfile


def unpack(archive: str, folder: str) -> None:
    """Unpack `archive` to `folder`, completely or not at all; without it the zip file is used.

    Several processes may do so at the same time; the first one wins.
    """
    with contextlib.suppress(OSError):
        part = tempfile.mkdtemp(prefix=os.path.basename(folder), dir=os.path.dirname(folder))
        try:
            with zipfile.ZipFile(archive) as file:
                file.extractall(part)
            os.rename(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
