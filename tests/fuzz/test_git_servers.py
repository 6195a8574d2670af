"""A short form of the hostile git servers of `make fuzz`."""

from pathlib import Path

from tests.fuzz.git_servers import fuzz

CASES = 12


def test_nothing_is_uncaught_led_elsewhere_or_left_behind(tmp_path: Path) -> None:
    seen = fuzz(tmp_path, CASES, seed=3)
    assert seen.faults == []
    assert seen.cases == CASES
    assert seen.fetched >= 2
    assert seen.refused >= 6
    assert len(seen.kinds) == 12
