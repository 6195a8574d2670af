"""Quantities as people write and read them."""

from __future__ import annotations

import argparse
import re
from typing import Any, Optional

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
#: Prefixes of what is smaller than one of the unit.
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def duration(text: str) -> float:
    """`90`, `90s`, `30m`, `1h30m` as seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r}: write a duration such as 90s, 30m or 1h30m")
    return sum(float(number) * _SECONDS[unit or "s"] for number, unit in parts)


def share(text: str) -> float:
    """`2%` or `0.02` as 0.02."""
    number, percent = (text[:-1], 100.0) if text.endswith("%") else (text, 1.0)
    try:
        value = float(number) / percent
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: write a share such as 2% or 0.02")
    return value


def run_id(text: str) -> str:
    """Of a run's id, or of any address that has it."""
    found = _UUID.search(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: give the id of a run, or its address")
    return found.group().lower()


def names(texts: Optional[list[str]]) -> list[str]:
    """Of options that may be repeated, and hold several with commas between."""
    return [name.strip() for text in texts or [] for name in text.split(",") if name.strip()]


def shown_time(seconds: float) -> str:
    if seconds < 60:
        return f"{max(0, round(seconds))} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"


def shown_change(change: Optional[float]) -> str:
    return "" if change is None else f"{change * 100:+.1f} %"


def shown_interval(interval: Optional[Any]) -> str:
    return "" if interval is None else f"[{shown_change(interval[0])}, {shown_change(interval[1])}]"


def shown_value(value: Optional[float], unit: str) -> str:
    """Three digits with a prefix: `842 µs`, `20.4 k/s`; only numbers without a unit stay bare."""
    if value is None:
        return ""
    size = abs(value)
    if unit == "s" and 0 < size < 1:
        scale, prefix = next((each for each in _SMALL if size >= each[0]), _SMALL[-1])
    else:
        scale, prefix = next((each for each in _LARGE if size >= each[0]), (1.0, ""))
    return f"{value / scale:.3g} {prefix}{unit}".strip()
