"""The command line as one file: a zip application that any Python from 3.9 on starts."""

from __future__ import annotations

import io
import zipfile
from functools import lru_cache
from pathlib import Path

_MAIN = b"import sys\n\nfrom pitwall.main import main\n\nsys.exit(main())\n"
#: The earliest time that a zip file can hold: the same files give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@lru_cache(maxsize=1)
def build_command() -> bytes:
    """Executable where Python 3 is called python3; the same bytes each time."""
    folder = Path(__file__).parent / "pitwall"
    files = {f"pitwall/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    files["__main__.py"] = _MAIN
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            # Stored, not compressed: whoever wants to read it before running it can.
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return b"#!/usr/bin/env python3\n" + buffer.getvalue()
