"""Numbers that scripts format read like those that the server formats."""

import pytest
from playwright.sync_api import Page

from cli.pitwall.units import format_change, format_duration, format_value

pytestmark = pytest.mark.browser

UNITS = ("s", "B", "s/1k", "B/1k", "B/s", "1/s", "ratio", "count", "money/1M", "J/1k", "")
VALUES = (
    0, 1e-7, 1.2e-5, 0.000_842, 0.004_96, 0.009_99, 0.05, 0.9994, 1, 9.994, 9.998, 12.34, 99.96,
    512, 999.7, 1023, 1024, 2970.4, 123_456_789, 5.4e11, -0.031, -1500,
)  # fmt: skip
RATIOS = (-0.1081, 0, 0.000_4, -0.000_4, 0.0351, 3.947)
SECONDS = (-1, 0, 45.2, 59.6, 125, 3599, 4800, 90_000)


def _formatted(page: Page, function: str, arguments: list[list[object]]) -> list[str]:
    script = f"""(all) => import("/static/js/numbers.js")
        .then((numbers) => all.map((each) => numbers.{function}(...each)))"""
    page.goto("/")
    texts: list[str] = page.evaluate(script, arguments)
    return texts


def test_scripts_format_values_like_the_server(page: Page) -> None:
    pairs: list[list[object]] = [[value, unit] for unit in UNITS for value in VALUES]

    texts = _formatted(page, "formatValue", pairs)

    expected = [format_value(value, unit) for unit in UNITS for value in VALUES]
    assert dict(zip(map(str, pairs), texts, strict=True)) == dict(
        zip(map(str, pairs), expected, strict=True)
    )


def test_scripts_format_changes_and_durations_like_the_server(page: Page) -> None:
    changes = _formatted(page, "formatChange", [[ratio] for ratio in RATIOS])
    durations = _formatted(page, "formatDuration", [[seconds] for seconds in SECONDS])

    assert changes == [format_change(ratio) for ratio in RATIOS]
    assert durations == [format_duration(seconds) for seconds in SECONDS]
