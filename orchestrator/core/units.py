"""Format numbers for people: values with their unit, durations, sizes. SI inside."""


def format_value(value: float | None, unit: str) -> str:
    """Return `value` of a metric with its unit, three to four significant digits; unknown is "–".

    Seconds become ms or µs where that reads better. Bytes are scaled by powers of 1024, ratios
    become per cent, and counts have no unit.
    """
    if value is None:
        return "–"
    if value < 0:
        return f"−{format_value(-value, unit)}"
    if unit in {"s", "B"}:
        return format_seconds(value) if unit == "s" else format_bytes(value)
    if unit in {"s/1k", "B/1k"}:
        return f"{format_value(value, unit[0])} / 1k"
    if unit == "B/s":
        return f"{format_bytes(value)}/s"
    if unit == "money/1M":
        return f"{_significant(value)} for 1M answers"
    if unit == "ratio":
        return f"{value * 100:.2f} %"
    if unit == "count":
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{_significant(value)} {unit}".strip()


def format_seconds(value: float) -> str:
    """Return a latency or CPU time in the unit (s, ms, µs) that reads best."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if abs(value) >= scale:
            return f"{_significant(value / scale)} {unit}"
    return f"{_significant(value / 1e-6)} µs"


def format_bytes(value: float) -> str:
    """Return a size in B, KiB, MiB or GiB."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(value) >= 1024**power:
            return f"{_significant(value / 1024**power)} {unit}"
    return f"{value:.0f} B"


def format_change(ratio: float | None) -> str:
    """Return a relative change such as -0.1081 as "−10.8 %"; unknown is "–"."""
    if ratio is None:
        return "–"
    shown = f"{abs(ratio) * 100:.1f}"
    sign = "±" if shown == "0.0" else "+" if ratio > 0 else "−"
    return f"{sign}{shown} %"


def format_duration(seconds: float | None) -> str:
    """Return a span of time to wait for: "45 s", "2 min 05 s", "1 h 20 min"; unknown is "–"."""
    if seconds is None:
        return "–"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def _significant(value: float) -> str:
    if value == 0:
        return "0"
    # The digits depend on the rounded value: 999.7 becomes 1 000, and 9.998 becomes 10.0.
    if abs(value) >= 999.5:
        return f"{value:,.0f}".replace(",", "\u202f")
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}" if abs(value) >= 0.01 else f"{value:.2g}"
