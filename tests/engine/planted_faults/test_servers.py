"""Servers that answer checks correctly and are wrong under load, each next to a correct one.

Nothing here depends on the speed of the machine (`test_speed.py` has what does).
"""

import re

import pytest

from orchestrator.runs.models import Run
from tests.support.planted_faults import Laboratory, codes, definition, reason

pytestmark = [pytest.mark.engine, pytest.mark.django_db]

#: A closed load; what is answered is judged by what the checks got.
CLOSED = "{connections: 4, duration_s: 1.5, warmup_s: 0.3}"
#: The definition states how long the answers have to be.
SIZED = "{connections: 8, rate: 200, duration_s: 1.5, warmup_s: 0.3, response_bytes: 13}"
#: A closed loop would otherwise use a CPU that other tests need.
TAKES_S = 0.005
#: While only one connection is open, the server answers correctly, as at the start of the load.
SHORTENED = re.compile(r"the answers had 5 (to 13 )?bytes instead of 13")


@pytest.fixture(scope="module")
def closed(lab: Laboratory) -> Run:
    return lab.measure("closed", definition(CLOSED, "refuses", "shortens", takes_s=TAKES_S))


@pytest.fixture(scope="module")
def sized(lab: Laboratory) -> Run:
    return lab.measure("sized", definition(SIZED, "shortens", takes_s=TAKES_S))


def test_a_refusal_of_every_hundredth_request_is_detected(lab: Laboratory, closed: Run) -> None:
    liar, honest = (
        lab.trial(closed, "liar", lie="refuses"),
        lab.trial(closed, "honest", lie="refuses"),
    )
    text = reason(liar, "http_errors")
    assert "answers had a status other than 200" in text
    assert "find out which statuses occurred" in text
    refused, _, of_all = text.partition(" answers")[0].partition(" of ")
    assert int(refused) == pytest.approx(int(of_all) / 100, abs=2)
    assert "http_errors" not in codes(honest)
    lab.check_left_out(closed, lie="refuses")


def test_a_body_that_is_shorter_under_load_is_detected(lab: Laboratory, closed: Run) -> None:
    """The definition states no length, and pages do change: this alone makes no trial invalid."""
    liar, honest = (
        lab.trial(closed, "liar", lie="shortens"),
        lab.trial(closed, "honest", lie="shortens"),
    )
    text = reason(liar, "response_changed")
    assert SHORTENED.search(text), text
    assert "set response_bytes" in text
    assert liar.validity in ("suspect", "invalid")
    assert [check["length"] for check in liar.provenance["checks"]] == [13] * 2
    assert "response_changed" not in codes(honest)


def test_a_body_shorter_than_defined_is_detected(lab: Laboratory, sized: Run) -> None:
    liar, honest = (
        lab.trial(sized, "liar", lie="shortens"),
        lab.trial(sized, "honest", lie="shortens"),
    )
    text = reason(liar, "response_size")
    assert SHORTENED.search(text), text
    assert [check["problem"] for check in liar.provenance["checks"]] == [None] * 2
    assert not {"response_size", "response_changed"} & codes(honest)
    lab.check_left_out(sized, lie="shortens")
