"""Pointers of Git LFS: small texts in a commit in place of the contents of large files."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from orchestrator.benchmarks.git_calls import call_git

#: The sizes in bytes of a pointer: its specification requires less than 1,024.
POINTER_SIZES = range(100, 1025)
_START = re.compile(
    rb"version https?://(?:git-lfs|hawser)\.github\.com/spec/v1\n(?:[^\n]*\n)*?oid sha256:"
)
#: Without extensions, which would need the programs that packed the content.
_POINTER = re.compile(
    rb"version [^\n]+\noid sha256:(?P<oid>[0-9a-f]{64})\nsize (?P<size>[0-9]{1,18})\n?"
)


class LfsPointer(NamedTuple):
    """`oid`: the SHA-256 of the content in hexadecimal digits; `size` in bytes."""

    oid: str
    size: int


class LfsFile(NamedTuple):
    """A file of a commit whose content is an object of Git LFS."""

    path: str
    pointer: LfsPointer
    is_executable: bool


def read_pointers(folder: Path, shas: Sequence[str]) -> dict[str, LfsPointer | None]:
    """Return the pointers among the blobs of a repository, by hash; the blobs must be small.

    The value is None for a pointer that cannot be read: of another form, or with extensions.
    """
    return {
        sha: _parse_pointer(text)
        for sha, text in _read_blobs(folder, shas)
        if _START.match(text)
    }  # fmt: skip


def _parse_pointer(text: bytes) -> LfsPointer | None:
    match = _POINTER.fullmatch(text)
    return LfsPointer(match["oid"].decode(), int(match["size"])) if match else None


def _read_blobs(folder: Path, shas: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    if not shas:
        return
    with tempfile.TemporaryFile() as wanted:
        wanted.write("".join(f"{sha}\n" for sha in shas).encode())
        wanted.seek(0)
        output = call_git("--git-dir", str(folder), "cat-file", "--batch", source=wanted).stdout
    start = 0
    for sha in shas:  # `<hash> blob <size>\n<content>\n` of each, in the order of the input
        head, _, _ = output[start : start + 200].partition(b"\n")
        begin = start + len(head) + 1
        end = begin + int(head.split()[2])
        yield sha, output[begin:end]
        start = end + 1
