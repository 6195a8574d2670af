"""The files of an upload: a single file, or the members of a .zip."""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping

from orchestrator.importers.document import FileFaultError

#: Limits of an upload after it is unpacked.
MAX_FILES = 20_000
MAX_BYTES = 64 * 1024**2
#: What the standard library raises for a damaged, encrypted or unsupported archive.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, NotImplementedError,
    RuntimeError, EOFError, ValueError, OSError,
)  # fmt: skip
_ZIP = b"PK\x03\x04"


def unpack_files(name: str, content: bytes) -> Mapping[str, bytes]:
    """Return name → content of each file; raise FileFaultError if there are too many or too large
    ones."""
    if not content.startswith(_ZIP):
        _check_size(len(content))
        return {name: content}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _read_members(archive)
    except _DAMAGED as error:
        raise FileFaultError("", f"{name} is not a .zip that can be read: {error}") from error


def _read_members(archive: zipfile.ZipFile) -> Mapping[str, bytes]:
    members = [each for each in archive.infolist() if not each.is_dir()]
    if len(members) > MAX_FILES:
        raise FileFaultError("", f"expected at most {MAX_FILES} files, got {len(members)}")
    files: dict[str, bytes] = {}
    left = MAX_BYTES
    for member in members:
        with archive.open(member) as file:
            # The size in the header may be wrong, so one byte more is requested than allowed.
            files[member.filename] = file.read(left + 1)
        left -= len(files[member.filename])
        if left < 0:
            _check_size(MAX_BYTES + 1)
    return files


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise FileFaultError(
            "", f"a history has at most {MAX_BYTES // 1024**2} MiB when it is unpacked; send it "
            "in parts"
        )  # fmt: skip
