"""Display units of metrics in reports. Pure."""

from collections.abc import Mapping

#: Unit of a metric → unit shown → factor from the former to the latter.
SCALES: Mapping[str, Mapping[str, float]] = {
    "s": {"s": 1, "ms": 1e3, "µs": 1e6},
    "B": {
        "B": 1, "KB": 1e-3, "MB": 1e-6, "GB": 1e-9,
        "KiB": 1 / 1024, "MiB": 1 / 1024**2, "GiB": 1 / 1024**3,
    },
    "B/s": {
        "B/s": 1, "KB/s": 1e-3, "MB/s": 1e-6, "GB/s": 1e-9,
        "KiB/s": 1 / 1024, "MiB/s": 1 / 1024**2, "GiB/s": 1 / 1024**3,
    },
    "1/s": {"1/s": 1, "req/s": 1, "ops/s": 1},
    "ratio": {"": 1, "%": 100},
    "count": {"": 1},
    "s/1k": {"s/1k": 1, "ms/1k": 1e3},
    "B/1k": {"B/1k": 1, "KB/1k": 1e-3},
    "J/1k": {"J/1k": 1},
    "money/1M": {"money/1M": 1},
}  # fmt: skip
#: The default units of reports.
_USUAL = {"s": "ms", "B/s": "MiB/s", "ratio": "%", "1/s": "1/s", "count": ""}


def choose_unit(unit: str) -> str:
    """Return the default unit for a metric of `unit`."""
    return _USUAL.get(unit, unit)


def list_units(unit: str) -> tuple[str, ...]:
    return tuple(SCALES.get(unit, {unit: 1.0}))


def scale(unit: str, shown: str) -> float:
    """Return the factor; KeyError if a metric of `unit` cannot be shown in this unit."""
    return SCALES.get(unit, {unit: 1.0})[shown]
