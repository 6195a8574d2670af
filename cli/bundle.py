"""Build the command line client as one file: a zip application for Python 3.9 or newer."""

from __future__ import annotations

import io
import zipfile
from functools import lru_cache
from pathlib import Path

_MAIN = b"import sys\n\nfrom pitwall.main import main\n\nsys.exit(main())\n"
#: The earliest timestamp of a zip file, so that the same files give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@lru_cache(maxsize=1)
def build_command() -> bytes:
    """Return the same bytes each time; the file is executable if Python 3 is called python3."""
    folder = Path(__file__).parent / "pitwall"
    files = {f"pitwall/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    files["__main__.py"] = _MAIN
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            # Stored without compression, so that users can read it before they run it.
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return b"#!/usr/bin/env python3\n" + buffer.getvalue()
