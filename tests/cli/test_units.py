"""Numbers are shown with a unit that reads well; what is unknown is a dash."""

import pytest

from cli.pitwall.units import (
    format_change,
    format_claim,
    format_duration,
    format_items,
    format_number,
    format_p_value,
    format_percent,
    format_value,
)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "s", "–"),
        (0.0123, "s", "12.3 ms"),
        (0.000_045, "s", "45.0 µs"),
        (2.5, "s", "2.50 s"),
        (12_345.6, "1/s", "12\u202f346 1/s"),
        (0.0, "B", "0 B"),
        (1536.0, "B", "1.50 KiB"),
        (0.001_234, "s/1k", "1.23 ms / 1k"),
        (-0.00191, "s", "−1.91 ms"),
    ],
)
def test_the_most_readable_unit_is_selected(value: float | None, unit: str, shown: str) -> None:
    assert format_value(value, unit) == shown


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        (None, "–"), (-0.1081, "−10.8 %"), (0.05, "+5.0 %"), (0.0, "±0.0 %"), (-0.0004, "±0.0 %"),
        (0.0005001, "+0.1 %"),
    ],
)  # fmt: skip
def test_changes_have_a_sign(ratio: float | None, shown: str) -> None:
    assert format_change(ratio) == shown


@pytest.mark.parametrize(
    ("measured", "likely", "shown"),
    [
        (0.067, 0.049, "+6.7 %, likely +4.9 %"),
        (0.2, 0.19999, "+20.0 %"),
        (-0.03, None, "−3.0 %"),
        (None, None, "–"),
    ],
)
def test_a_likely_change_is_shown_if_it_is_another(
    measured: float | None, likely: float | None, shown: str
) -> None:
    assert format_claim(measured, likely) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "–"), (-3, "0 s"), (45.4, "45 s"), (125, "2 min 05 s"), (4800, "1 h 20 min")],
)
def test_waiting_times_are_rounded(seconds: float | None, shown: str) -> None:
    assert format_duration(seconds) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.02, "2 %"), (0.0045, "0.45 %"), (0.12345, "12.3 %"), (15.0, "1\u202f500 %"), (0.0, "0 %")],
)
def test_shares_have_no_zeros_at_the_end(share: float, shown: str) -> None:
    assert format_percent(share) == shown


def test_a_number_may_have_exact_decimals() -> None:
    assert format_number(-12_345.6) == "−12\u202f346"
    assert format_number(12_345.6, decimals=2) == "12\u202f345.60"
    assert format_number(-0.001, decimals=2) == "0.00"
    assert format_number(1.5) == "1.50"


def test_a_threshold_is_as_exact_as_it_was_written() -> None:
    assert format_value(0.1, "s", digits=3) == "100 ms"
    assert format_value(0.5, "count", digits=3) == "0.5"
    assert format_value(1.25, "s", digits=6) == "1.25 s"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0312, "0.031"), (3e-7, "3e-07"), (1e-12, "below 1e-9")]
)
def test_p_values_have_two_digits(value: float, shown: str) -> None:
    assert format_p_value(value) == shown


def test_the_name_of_things_agrees_with_their_number() -> None:
    assert format_items(1, "trial") == "1 trial"
    assert format_items(0, "trial") == "0 trials"
    assert format_items(2970, "trial") == "2\u202f970 trials"
