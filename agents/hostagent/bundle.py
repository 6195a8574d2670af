"""The agent as one file: a zip application named by the hash of what is in it.

Run for the first time it unpacks itself beside itself, so that Python keeps the compiled modules:
a host is asked often, and to compile them each time would take longer than most answers.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import NamedTuple

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
#: The earliest time that a zip file can hold: the same files give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Bundle(NamedTuple):
    """`name` is `<hash>.pyz`."""

    name: str
    content: bytes


def build_bundle() -> Bundle:
    """All modules of this package, run by `python3 <name> VERB`; the same each time."""
    folder = Path(__file__).parent
    files = {f"hostagent/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    files["__main__.py"] = _MAIN
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    content = buffer.getvalue()
    digest = hashlib.sha256(b"".join(files.values())).hexdigest()
    return Bundle(f"{digest[:32]}.pyz", content)
