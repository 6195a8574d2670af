"""A short form of the hostile visitor of `make fuzz`."""

from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.visitors import Seen, fuzz

REQUESTS = 250


@pytest.mark.django_db
def test_no_page_fails_or_tells_a_visitor_what_is_for_members(
    tmp_path: Path, settings: Any
) -> None:
    settings.ALLOW_LOCAL_REPOSITORIES = True
    settings.DATA_DIR = tmp_path / "data"
    seen = fuzz(tmp_path, REQUESTS, seed=1)
    assert seen.faults == []
    assert seen.requests == REQUESTS
    assert seen.parameters > 50
    assert seen.statuses[200] > 20


def test_it_sees_what_is_wrong() -> None:
    seen = Seen(unmeasured=("abcdef1234",))
    wrong = [
        list(seen._wrong(500, "", 0, "/")),
        list(seen._wrong(200, "the host membersonly.example", 0, "/")),
        list(seen._wrong(404, "measured at main (abcdef1234)", 0, "/")),
        list(seen._wrong(200, "", 11, "/")),
        list(seen._wrong(404, "no commit abcdef1234", 0, "/?commit=abcdef1234")),
    ]
    assert [len(each) for each in wrong] == [1, 1, 1, 1, 0]
