"""Programs of this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

#: Debian's folders of servers, which are not on the PATH of an ordinary user.
_SERVER_FOLDERS = ("/usr/sbin", "/usr/local/sbin")


def find_program(name: str) -> Path | None:
    """The program's path: on the PATH, or in a folder of servers. None if it is not installed."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), *_SERVER_FOLDERS])
    path = shutil.which(name, path=folders)
    return Path(path) if path else None
