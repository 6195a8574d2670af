"""A few polls of a hostile agent; `make fuzz` has hundreds."""

from pathlib import Path

import pytest

from tests.fuzz.hostile_hosts import fuzz


@pytest.mark.django_db(transaction=True)
def test_hostile_hosts_cause_no_error_and_change_no_other_team(
    tmp_path: Path, data_dir: Path
) -> None:
    seen = fuzz(tmp_path, 15, seed=1, most_s=120)
    assert seen.faults == []
    assert seen.polls == 15
    # Lies that are refused at once would not test later code.
    assert seen.stored > 0
