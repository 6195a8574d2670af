"""Parse durations, shares, run ids and names that people write."""

from __future__ import annotations

import argparse
import re
from typing import Optional

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def parse_duration(text: str) -> float:
    """Parse `90`, `90s`, `30m` or `1h30m` as seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r}: write a duration such as 90s, 30m or 1h30m")
    return sum(float(number) * _SECONDS[unit or "s"] for number, unit in parts)


def parse_share(text: str) -> float:
    """Parse `2%` or `0.02` as 0.02."""
    number, percent = (text[:-1], 100.0) if text.endswith("%") else (text, 1.0)
    try:
        value = float(number) / percent
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: write a share such as 2% or 0.02")
    return value


def parse_run_id(text: str) -> str:
    """Return the id in a run's id or URL."""
    match = _UUID.search(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r}: give the id of a run, or its address")
    return match.group().lower()


def split_names(texts: Optional[list[str]]) -> list[str]:
    """Split options that may be repeated and contain several names separated by commas."""
    return [name.strip() for text in texts or [] for name in text.split(",") if name.strip()]
