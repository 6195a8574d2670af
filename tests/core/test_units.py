"""Numbers are shown with a unit that reads well; what is unknown is a dash."""

import pytest

from orchestrator.core.units import format_change, format_duration, format_value


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
    ("seconds", "shown"),
    [(None, "–"), (-3, "0 s"), (45.4, "45 s"), (125, "2 min 05 s"), (4800, "1 h 20 min")],
)
def test_waiting_times_are_rounded(seconds: float | None, shown: str) -> None:
    assert format_duration(seconds) == shown
