"""Reads of single values below /proc and /sys, below a root that tests can set."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

SYSTEM = Path("/")
CPU = "sys/devices/system/cpu"


def read_text(path: Path) -> Optional[str]:
    """Return the stripped text of a file; None if it is empty or cannot be read."""
    try:
        return path.read_text("utf-8", "replace").strip() or None
    except OSError:
        return None


def read_number(path: Path) -> Optional[int]:
    """Return the whole number in a file; None if there is none."""
    text = read_text(path)
    return int(text) if text and text.lstrip("-").isdigit() else None


def read_mhz(path: Path) -> Optional[float]:
    """Return the kilohertz in a file as megahertz; None if there is no number."""
    khz = read_number(path)
    return None if khz is None else khz / 1000
