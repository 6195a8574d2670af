"""A short form of the hostile git servers of `make fuzz`."""

from pathlib import Path

from tests.fuzz.git_servers import fuzz

CASES = 12


def test_hostile_git_servers_cause_no_error_redirect_or_leftover(tmp_path: Path) -> None:
    seen = fuzz(tmp_path, CASES, seed=3)
    assert seen.faults == []
    assert seen.cases == CASES
    assert seen.fetched >= 2
    assert seen.refused >= 6
    assert len(seen.kinds) == 12
