"""Quantities in the form that people write and read."""

from __future__ import annotations

import argparse
import re
from typing import Any, Optional

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SECONDS_SHOWN = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_BYTES_SHOWN = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def duration(text: str) -> float:
    """Parse `90`, `90s`, `30m` or `1h30m` as seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r}: write a duration such as 90s, 30m or 1h30m")
    return sum(float(number) * _SECONDS[unit or "s"] for number, unit in parts)


def share(text: str) -> float:
    """Parse `2%` or `0.02` as 0.02."""
    number, percent = (text[:-1], 100.0) if text.endswith("%") else (text, 1.0)
    try:
        value = float(number) / percent
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: write a share such as 2% or 0.02")
    return value


def run_id(text: str) -> str:
    """Return the id in a run's id or URL."""
    found = _UUID.search(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: give the id of a run, or its address")
    return found.group().lower()


def names(texts: Optional[list[str]]) -> list[str]:
    """Split options that may be repeated and contain several names separated by commas."""
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
    """Return three digits with a suitable prefix: `842 µs`, `20.4 MiB`, `2,970/s`, `160 ms/1k`."""
    if value is None:
        return ""
    base, slash, per = unit.partition("/")
    if base == "s":
        return _scaled(value, _SECONDS_SHOWN) + slash + per
    if base == "B":
        return _scaled(value, _BYTES_SHOWN) + slash + per
    if unit == "ratio":
        return f"{value * 100:.2f} %"
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return number + (f"/{per}" if base == "1" else "" if unit == "count" else f" {unit}")


def _scaled(value: float, sizes: tuple[tuple[float, str], ...]) -> str:
    scale, name = next((each for each in sizes if abs(value) >= each[0]), sizes[-1])
    return f"{value / scale:.3g} {name}"
