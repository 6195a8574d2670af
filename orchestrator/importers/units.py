"""Parse and convert units in files."""

from decimal import Decimal

#: Unit → (its kind, its size in the first unit of that kind).
_SIZES = {
    "ns": ("s", "1e-9"), "us": ("s", "1e-6"), "µs": ("s", "1e-6"), "μs": ("s", "1e-6"),
    "ms": ("s", "1e-3"), "s": ("s", "1"), "sec": ("s", "1"), "min": ("s", "60"), "m": ("s", "60"),
    "h": ("s", "3600"), "nanoseconds": ("s", "1e-9"), "microseconds": ("s", "1e-6"),
    "milliseconds": ("s", "1e-3"), "second": ("s", "1"), "seconds": ("s", "1"),
    "minutes": ("s", "60"), "bytes": ("B", "1"),
    "B": ("B", "1"), "KB": ("B", "1e3"), "MB": ("B", "1e6"), "GB": ("B", "1e9"),
    "KiB": ("B", "1024"), "MiB": ("B", "1048576"), "GiB": ("B", "1073741824"),
    "B/s": ("B/s", "1"), "KB/s": ("B/s", "1e3"), "MB/s": ("B/s", "1e6"), "GB/s": ("B/s", "1e9"),
    "KiB/s": ("B/s", "1024"), "MiB/s": ("B/s", "1048576"), "GiB/s": ("B/s", "1073741824"),
    "1/s": ("1/s", "1"), "req/s": ("1/s", "1"), "ops/s": ("1/s", "1"), "r/s": ("1/s", "1"),
    "ratio": ("ratio", "1"), "%": ("ratio", "0.01"),
    "count": ("count", "1"),
}  # fmt: skip
_PER_SECOND = frozenset({"s", "sec", "second"})
_TIMES = frozenset(unit for unit, (kind, _) in _SIZES.items() if kind == "s")


def convert(value: float, unit: str, wanted: str) -> float:
    """Return `value` in the unit `wanted`, without rounding errors; no unit means ours.

    Raise ValueError if the two units are of different kinds.
    """
    if unit in ("", wanted):
        return value
    known, goal = _SIZES.get(unit), _SIZES.get(wanted)
    if known is None or goal is None or known[0] != goal[0]:
        raise ValueError(
            f"expected the unit {wanted} or one that can be converted to it, got {unit!r}"
        )
    return float(Decimal(repr(value)) * Decimal(known[1]) / Decimal(goal[1]))


def convert_to_base(value: float, unit: str) -> tuple[float, str]:
    """Return a value in the base unit of its kind, and that unit: `s`, `1/s`, `B`, `B/s`, `ratio`.

    A time or a size per iteration counts as one (`ns/iter`, `B/op`). A value of another unit stays
    as it is, with the unit "".
    """
    name = unit.strip()
    head, _, per = (part.strip() for part in name.partition("/"))
    if name not in _SIZES and _SIZES.get(head, ("",))[0] in ("s", "B"):
        name = head
    if name in _SIZES:
        kind, size = _SIZES[name]
        return float(Decimal(repr(value)) * Decimal(size)), "" if kind == "count" else kind
    return value, "1/s" if per in _PER_SECOND else ""


def parse_seconds(text: str) -> float | None:
    """Return `1.23ms`, `456us` or `2m` in seconds; None if it is no span of time."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzµμ")
    unit = text.strip()[len(number) :]
    if unit not in _TIMES:
        return None
    try:
        return convert(float(number), unit, "s")
    except ValueError:
        return None


def classify_unit(unit: str) -> str:
    """Return `time` for a time or a time per iteration, `rate` for a frequency, else `value`."""
    head, _, per = unit.partition("/")
    if head.strip() in _TIMES:
        return "time"
    return "rate" if per.strip() in _PER_SECOND else "value"
