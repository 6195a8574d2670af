"""The agent as one file: a zip application named by the hash of what is in it."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

_MAIN = b"import sys\nfrom hostagent.cli import main\nsys.exit(main())\n"
#: The earliest time that a zip file can hold: the same files give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bundle:
    """`name` is `<hash>.pyz`."""

    name: str
    content: bytes


def build_bundle() -> Bundle:
    """All modules of this package, run by `python3 <name> VERB`; the same each time."""
    folder = Path(__file__).parent
    files = {f"hostagent/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"__main__.py": _MAIN, **files}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    content = buffer.getvalue()
    digest = hashlib.sha256(b"".join(files.values())).hexdigest()
    return Bundle(f"{digest[:32]}.pyz", content)
