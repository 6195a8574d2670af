"""Messages while tools are downloaded or built."""

from __future__ import annotations

import sys
from pathlib import Path


def print_message(text: str) -> None:
    # Standard output is for the paths only.
    print(f"pitwall: {text}", file=sys.stderr, flush=True)


def read_tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
