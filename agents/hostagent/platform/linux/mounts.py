"""The file system that a folder is on, from /proc/self/mountinfo."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple, Optional

from ...errors import AgentError
from .facts import read_text

_MOUNTINFO = Path("/proc/self/mountinfo")
#: Several machines can see the files of these at the same time.
NETWORK_TYPES = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse.ceph", "fuse.glusterfs", "fuse.rclone",
        "fuse.s3fs", "fuse.sshfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
        "ocfs2", "orangefs", "smb2", "smb3", "smbfs",
    }
)  # fmt: skip


class Mount(NamedTuple):
    """`type`: such as `ext4`. `source`: the device, or the server and its folder."""

    folder: str
    type: str
    source: str


def find_mount(path: str, mountinfo: str) -> Optional[Mount]:
    """Return the mount that an absolute path without links is on.

    Of two mounts on one folder the later one hides the earlier one.
    """
    found = None
    for line in mountinfo.splitlines():
        mount = _parse_mount(line)
        if mount is None or not _is_below(path, mount.folder):
            continue
        if found is None or len(mount.folder) >= len(found.folder):
            found = mount
    return found


def require_local_disk(root: Path, mountinfo: Optional[str] = None) -> None:
    """Raise AgentError if several machines can see the work directory.

    Locks, pids and builds of one machine would be taken for those of another.
    """
    text = read_text(_MOUNTINFO) if mountinfo is None else mountinfo
    mount = find_mount(os.path.realpath(root), text or "")
    if mount is not None and mount.type in NETWORK_TYPES:
        raise NetworkFileSystem(
            f"the work directory {root} is on a network file system ({mount.type}, "
            f"{mount.source}), which other machines can share. Choose a folder on a local disk "
            "as the work directory of this host, such as /var/tmp/pitwall"
        )


class NetworkFileSystem(AgentError):
    code = "network_file_system"


def _parse_mount(line: str) -> Optional[Mount]:
    """Parse a line: the mount point is field 5, type and source follow the separator " - "."""
    before, _, after = line.partition(" - ")
    fields, more = before.split(" "), after.split(" ")
    if len(fields) < 5 or len(more) < 2:
        return None
    return Mount(_unescape(fields[4]), more[0], _unescape(more[1]))


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _is_below(path: str, folder: str) -> bool:
    return folder == "/" or path == folder or path.startswith(folder + "/")
