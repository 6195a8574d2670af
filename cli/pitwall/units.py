"""Numbers for people: values with their unit, shares, changes, durations.

This is the only number formatter in Python: pages, texts of the API, exports, comments to pull
requests and the command line use it. It is part of the command line because that is one file
without dependencies. `static/js/numbers.js` has the same rules for scripts; a test compares both.
"""

from __future__ import annotations

from typing import Optional

UNKNOWN = "–"
_MINUS, _THIN_SPACE = "−", "\u202f"
_SIZES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "B": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
}
#: Unit of a metric → the unit that is scaled, and what follows its name.
_SCALED = {
    "s": ("s", ""),
    "B": ("B", ""),
    "s/1k": ("s", " / 1k"),
    "B/1k": ("B", " / 1k"),
    "B/s": ("B", "/s"),
}
#: Smaller p-values say nothing more.
_SMALLEST_P = 1e-9


def format_value(value: Optional[float], unit: str, *, digits: Optional[int] = None) -> str:
    """`value` with its unit: "12.3 ms", "1.50 KiB", "2 970 1/s"; unknown is "–".

    Seconds are shown in ms or µs if that reads better, bytes by powers of 1024, ratios in per cent,
    and counts without a unit. `digits`: see format_number.
    """
    if value is None:
        return UNKNOWN
    if value < 0:
        return f"{_MINUS}{format_value(-value, unit, digits=digits)}"
    if unit == "ratio":
        return format_percent(value, digits=digits, decimals=None if digits else 2)
    if unit == "count":
        return format_number(value, digits=digits, decimals=None if digits else 0)
    if unit == "money/1M":
        return f"{format_number(value, digits=digits)} for 1M answers"
    if unit not in _SCALED:
        return f"{format_number(value, digits=digits)} {unit}".strip()
    base, suffix = _SCALED[unit]
    sizes = _SIZES[base]
    size, name = next((each for each in sizes if value >= each[0]), sizes[-1])
    decimals = 0 if name == "B" else None
    return f"{format_number(value / size, digits=digits, decimals=decimals)} {name}{suffix}"


def format_seconds(value: float) -> str:
    """A latency or CPU time in the unit (s, ms, µs) that reads best."""
    return format_value(value, "s")


def format_bytes(value: float) -> str:
    """A size in B, KiB, MiB or GiB."""
    return format_value(value, "B")


def format_count(value: float) -> str:
    """A whole number, its thousands set off by narrow spaces."""
    return format_value(value, "count")


def format_items(count: int, noun: str) -> str:
    """A number of things with their name: "1 trial", "2 970 trials"."""
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"


def format_percent(
    share: float, *, digits: Optional[int] = 3, decimals: Optional[int] = None
) -> str:
    """A share such as 0.025 as "2.5 %"."""
    return f"{format_number(share * 100, digits=digits, decimals=decimals)} %"


def format_change(ratio: Optional[float]) -> str:
    """A relative change such as -0.1081 as "−10.8 %"; unknown is "–"."""
    if ratio is None:
        return UNKNOWN
    shown = f"{abs(ratio) * 100:.1f}"
    sign = "±" if shown == "0.0" else "+" if ratio > 0 else _MINUS
    return f"{sign}{shown} %"


def format_claim(measured: Optional[float], likely: Optional[float]) -> str:
    """A measured change, and the likely one if it is another: "+6.7 %, likely +4.9 %"."""
    text = format_change(measured)
    other = text if likely is None else format_change(likely)
    return text if other == text else f"{text}, likely {other}"


def format_interval(interval: Optional[tuple[float, float]]) -> str:
    """A confidence interval of a change: "−3.1 % to −1.2 %"; unknown is "–"."""
    if interval is None:
        return UNKNOWN
    return f"{format_change(interval[0])} to {format_change(interval[1])}"


def format_p_value(value: float) -> str:
    """Two significant digits; "below 1e-9" for the smallest."""
    return f"{value:.2g}" if value >= _SMALLEST_P else "below 1e-9"


def format_duration(seconds: Optional[float]) -> str:
    """A span of time to wait for: "45 s", "2 min 05 s", "1 h 20 min"; unknown is "–"."""
    if seconds is None:
        return UNKNOWN
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def format_number(
    value: float,
    *,
    digits: Optional[int] = None,
    decimals: Optional[int] = None,
) -> str:
    """A number without a unit: three significant digits, four and more as a whole number.

    `digits`: this many significant digits at most and no zeros at the end, as for thresholds.
    `decimals`: exactly this many digits after the point.
    """
    size = abs(value)
    if decimals is not None:
        text = f"{size:,.{decimals}f}"
    elif digits is not None:
        text = f"{size:,.0f}" if size >= 10**digits else f"{size:.{digits}g}"
    else:
        text = _format_significant(size)
    is_negative = value < 0 and bool(text.strip("0.,"))
    return f"{_MINUS if is_negative else ''}{text.replace(',', _THIN_SPACE)}"


def _format_significant(size: float) -> str:
    if size == 0:
        return "0"
    # The digits depend on the rounded value: 999.7 becomes 1 000, and 9.998 becomes 10.0.
    if size >= 999.5:
        return f"{size:,.0f}"
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{size:.{decimals}f}" if size >= 0.01 else f"{size:.2g}"
