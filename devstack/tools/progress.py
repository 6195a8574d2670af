"""What is said while tools are got."""

from __future__ import annotations

import sys
from pathlib import Path


def say(text: str) -> None:
    # Standard output is for the paths alone.
    print(f"pitwall: {text}", file=sys.stderr, flush=True)


def tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
