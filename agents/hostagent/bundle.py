"""The agent as one file: a zip application named by the hash of its content.

It contains the HTTP/2 packages as they are installed here: requirements.txt pins their hashes.

On its first run it unpacks itself next to itself, so that Python caches the compiled modules:
compiling them for each command would take longer than most commands.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

#: The third-party packages of the agent, in pure Python; each package is one folder.
PACKAGES = ("h2", "hpack", "hyperframe")

_MAIN = b"""\
import os
import sys

archive = sys.path[0]
folder = archive[: -len(".pyz")]
if not os.path.isdir(folder):
    from hostagent.unpacking import unpack

    unpack(archive, folder)
    for name in [name for name in sys.modules if name.startswith("hostagent")]:
        del sys.modules[name]
if os.path.isdir(folder):
    sys.path[0] = folder

from hostagent.cli import main

sys.exit(main())
"""
#: The earliest timestamp of a zip file, so that the same files give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Bundle(NamedTuple):
    """`name` is `<hash>.pyz`."""

    name: str
    content: bytes


def build_bundle() -> Bundle:
    """Bundle all modules of this package and PACKAGES, run by `python3 <name> COMMAND`;
    reproducible.

    PackageNotFoundError if one of PACKAGES is not installed.
    """
    folder = Path(__file__).parent
    modules = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    files = {f"hostagent/{name}": modules[name].read_bytes() for name in sorted(modules)}
    for package in PACKAGES:
        files.update(_iterate_package_files(package))
    files["__main__.py"] = _MAIN
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    content = buffer.getvalue()
    digest = hashlib.sha256(b"".join(files.values())).hexdigest()
    return Bundle(f"{digest[:32]}.pyz", content)


def _iterate_package_files(package: str) -> Iterator[tuple[str, bytes]]:
    """Its modules and its licence, which must be distributed with them."""
    for file in sorted(distribution(package).files or ()):
        module = file.suffix == ".py" and file.parts[0] == package
        if module or file.name.startswith("LICENSE"):
            yield f"{package}/{file.name}", Path(str(file.locate())).read_bytes()
