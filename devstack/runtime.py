"""Short private folders for sockets: a socket's path may have 107 bytes at most (macOS: 103)."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from devstack.errors import DevstackError

LONGEST_BYTES = 103
LONGEST_NAME = ".s.PGSQL.5432.lock"


class RuntimeFolderError(DevstackError):
    """The folder for sockets is not safe to use; the text says why."""


def create_runtime_folder(owner: Path) -> Path:
    """Return a private folder (0700), always the same one for the folder `owner`.

    Raise RuntimeFolderError if another user has taken the name.
    """
    key = hashlib.sha256(os.fsencode(owner.absolute())).hexdigest()[:12]
    name = f"pitwall-{os.geteuid()}-{key}"
    folder = Path(tempfile.gettempdir()).resolve() / name
    if len(os.fsencode(folder / LONGEST_NAME)) > LONGEST_BYTES:
        folder = Path("/tmp") / name
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        check_private_folder(folder)
    return folder


def check_private_folder(folder: Path) -> None:
    status = folder.lstat()
    # root may have given it to the user that the database runs as.
    ours = status.st_uid == os.geteuid() or os.geteuid() == 0
    if not stat.S_ISDIR(status.st_mode) or not ours or status.st_mode & 0o077:
        raise RuntimeFolderError(
            f"{folder} exists and is not a folder of ours alone. Remove it, or set TMPDIR to a "
            "folder that others cannot write to."
        )


def give_to(folder: Path, user: tuple[int, int]) -> None:
    os.chown(folder, *user)
