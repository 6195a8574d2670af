"""Figures are brought into our units without the rounding of binary fractions."""

import pytest

from orchestrator.importers.own_form import parse_scalar
from orchestrator.importers.units import classify_unit, convert, parse_seconds


@pytest.mark.parametrize(
    ("value", "unit", "wanted", "expected"),
    [
        (881.15, "ms", "s", 0.88115),
        (59874.0, "ns", "s", 0.000059874),
        (1.58, "MB/s", "B/s", 1_580_000.0),
        (99.9, "%", "ratio", 0.999),
        (1013.0, "req/s", "1/s", 1013.0),
        (3.0, "", "s", 3.0),
        (1.5, "s", "ms", 1500.0),
    ],
)
def test_units_are_converted(value: float, unit: str, wanted: str, expected: float) -> None:
    assert convert(value, unit, wanted) == expected


def test_a_unit_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="expected the unit s"):
        convert(1.0, "MB", "s")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("119.50us", 0.0001195), ("1.02m", 61.2), ("0.00us", 0.0), ("3ms", 0.003), ("quick", None),
     ("12", None), ("1.2.3ms", None), ("ms", None)],
)  # fmt: skip
def test_durations_are_parsed(text: str, seconds: float | None) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("unit", "kind"),
    [("ns/iter", "time"), ("ms", "time"), ("ops/sec", "rate"), ("B/s", "rate"), ("pages", "value")],
)
def test_durations_and_rates_are_distinguished(unit: str, kind: str) -> None:
    assert classify_unit(unit) == kind


@pytest.mark.parametrize(
    ("text", "value"),
    [("100", 100), ("-3", -3), ("0.5", 0.5), ("3.10", "3.10"), ("007", "007"), ("true", True),
     ("h2", "h2"), ("1e3", "1e3")],
)  # fmt: skip
def test_values_of_axes_are_parsed(text: str, value: object) -> None:
    assert parse_scalar(text) == value
    assert type(parse_scalar(text)) is type(value)
