"""Unpack the tar archive of a commit without trusting it."""

from __future__ import annotations

import os
import shutil
import tarfile
import zlib
from pathlib import Path

from ..errors import BuildFailed

#: A larger archive is not the source of a program, but an attempt to fill the disk.
MAX_BYTES = 8 << 30
MAX_MEMBERS = 300_000
#: The errors of an invalid archive, when it is read or a file is named.
_GARBAGE = (OSError, tarfile.TarError, EOFError, zlib.error, ValueError, ArithmeticError)


def unpack(source: Path, target: Path) -> None:
    """Write the files, folders and symbolic links of `source` into the new folder `target`.

    Raises BuildFailed and removes everything for other members (hard links, devices), for names and
    links that lead outside, and for more than MAX_BYTES or MAX_MEMBERS.
    """
    target.mkdir(parents=True)
    try:
        # Plain or gzip: the orchestrator creates both.
        with tarfile.open(source, "r:gz" if _is_gzip(source) else "r:") as archive:
            _write_all(archive, target)
        _check_links(target)
    except (BuildFailed, *_GARBAGE) as error:
        shutil.rmtree(target, ignore_errors=True)
        raise BuildFailed(f"{source.name} cannot be unpacked: {error}") from error


def _is_gzip(source: Path) -> bool:
    with open(source, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _write_all(archive: tarfile.TarFile, target: Path) -> None:
    size = 0
    for number, member in enumerate(archive):
        size += member.size
        if number >= MAX_MEMBERS or size > MAX_BYTES:
            raise BuildFailed(
                f"it has more than {MAX_BYTES >> 30} GiB or {MAX_MEMBERS:,} files and folders"
            )
        _write(archive, member, target)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    path = _resolve_inside(member.name, target)
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        _resolve_inside(
            os.path.join(os.path.dirname(member.name), member.linkname), target, member.name
        )
        os.symlink(member.linkname, path)
    elif member.isfile():
        _write_file(archive, member, path)
    else:
        raise BuildFailed(f"{member.name!r} is neither a file, a folder nor a symbolic link")


def _write_file(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = archive.extractfile(member)
    # Mode "x" refuses a duplicate name, and a name that is a link.
    with open(path, "xb") as file:
        shutil.copyfileobj(content, file)  # type: ignore[arg-type]
    path.chmod(0o755 if member.mode & 0o100 else 0o644)


def _resolve_inside(name: str, target: Path, named_by: str = "") -> Path:
    """Return the path of `name` below `target`; its parents are followed through written links."""
    plain = os.path.normpath(name)
    path = target / plain
    parent = target if plain == "." else path.parent
    outside = os.path.isabs(name) or plain.split(os.sep)[0] == ".."
    if outside or not _is_below(os.path.realpath(parent), target):
        raise BuildFailed(f"{named_by or name!r} leads outside of the tree")
    return path


def _is_below(path: str, target: Path) -> bool:
    top = os.path.realpath(target)
    return path == top or path.startswith(top + os.sep)


def _check_links(target: Path) -> None:
    """Check links again when all exist: one may lead through another."""
    for folder, folders, files in os.walk(target):
        for path in (os.path.join(folder, name) for name in folders + files):
            if os.path.islink(path) and not _is_below(os.path.realpath(path), target):
                raise BuildFailed(f"the link {os.path.relpath(path, target)!r} leads outside")
