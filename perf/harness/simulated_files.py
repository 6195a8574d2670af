"""The files of a simulated host: only their sizes are kept, and each folder exists."""

from __future__ import annotations

import stat
from typing import Any

import paramiko


class SimulatedFiles(paramiko.SFTPServerInterface):
    """The SFTP of one connection."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._sizes: dict[str, int] = {}

    def stat(self, path: str) -> paramiko.SFTPAttributes:
        attributes = paramiko.SFTPAttributes()
        size = self._sizes.get(path)
        attributes.st_mode = 0o700 | (stat.S_IFDIR if size is None else stat.S_IFREG)
        attributes.st_size = size or 0
        return attributes

    def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> paramiko.SFTPHandle:
        self._sizes[path] = 0
        return _SimulatedFile(self._sizes, path)

    def posix_rename(self, oldpath: str, newpath: str) -> int:
        self._sizes[newpath] = self._sizes.pop(oldpath)
        return paramiko.sftp.SFTP_OK

    def remove(self, path: str) -> int:
        self._sizes.pop(path, None)
        return paramiko.sftp.SFTP_OK


class _SimulatedFile(paramiko.SFTPHandle):
    def __init__(self, sizes: dict[str, int], path: str) -> None:
        super().__init__()
        self._sizes, self._path = sizes, path

    def write(self, offset: int, data: Any) -> int:
        self._sizes[self._path] = max(self._sizes[self._path], offset + len(data))
        return paramiko.sftp.SFTP_OK

    def chattr(self, attr: paramiko.SFTPAttributes) -> int:
        return paramiko.sftp.SFTP_OK

    def stat(self) -> paramiko.SFTPAttributes:
        attributes = paramiko.SFTPAttributes()
        attributes.st_mode = 0o600 | stat.S_IFREG
        attributes.st_size = self._sizes[self._path]
        return attributes
