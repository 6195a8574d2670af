"""Read the members of an archive, at most up to their stated size, and check them."""

import hashlib
import zipfile
from typing import IO, Any

from orchestrator.archives.projects.form import MOST_LINE, Manifest
from orchestrator.core.errors import InvalidRequestError


class MemberBytes:
    """A member of the archive, read up to the size in its manifest and checked at its end."""

    def __init__(self, name: str, source: IO[bytes] | None, size: int, sha256: str) -> None:
        self._name, self._source, self._left, self._sha256 = name, source, size, sha256
        self._digest = hashlib.sha256()

    @classmethod
    def open_member(cls, archive: zipfile.ZipFile, manifest: Manifest, name: str) -> "MemberBytes":
        member = manifest.members.get(name)
        if member is None:
            return cls(name, None, 0, hashlib.sha256().hexdigest())
        if archive.getinfo(name).file_size != member.bytes:
            raise InvalidRequestError(f"{name} differs from the export: it has another size")
        return cls(name, archive.open(name), member.bytes, member.sha256)

    def __enter__(self) -> "MemberBytes":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._check()
        finally:
            if self._source is not None:
                self._source.close()

    def take(self, size: Any) -> bytes:
        if type(size) is not int or not 0 <= size <= min(self._left, MOST_LINE):
            raise InvalidRequestError(f"{self._name} does not have the bytes of this row")
        return self._count_bytes(self._source.read(size) if self._source is not None else b"")

    def read_line(self) -> bytes:
        assert self._source is not None, "every kind has its lines"
        return self._count_bytes(self._source.readline(min(self._left, MOST_LINE)))

    def _count_bytes(self, content: bytes) -> bytes:
        self._left -= len(content)
        self._digest.update(content)
        return content

    def _check(self) -> None:
        if self._left or self._digest.hexdigest() != self._sha256:
            raise InvalidRequestError(f"{self._name} differs from the export: it is damaged")
