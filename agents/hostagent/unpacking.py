"""The agent's own modules out of its zip file, where that file lies."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zipfile


def unpack(archive: str, folder: str) -> None:
    """Make `folder` out of `archive`, completely or not at all; where that fails, the file will do.

    Several may try at once: one gets there first.
    """
    with contextlib.suppress(OSError):
        part = tempfile.mkdtemp(prefix=os.path.basename(folder), dir=os.path.dirname(folder))
        try:
            with zipfile.ZipFile(archive) as file:
                file.extractall(part)
            os.rename(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
