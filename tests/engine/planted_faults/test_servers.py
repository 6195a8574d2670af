"""Servers that answer checks correctly and are wrong under load, each next to a correct one."""

import pytest

from orchestrator.runs.models import Run
from tests.support.planted_faults import Laboratory, codes, definition, reason

pytestmark = [pytest.mark.engine, pytest.mark.quiet, pytest.mark.django_db]

#: A closed load; what is answered is judged by what the checks got.
CLOSED = "{connections: 4, duration_s: 1.5, warmup_s: 0.3}"
#: As many requests as a server of 5 ms each cannot answer, and how long its answers have to be.
OPEN = "{connections: 8, rate: 400, duration_s: 1.5, warmup_s: 0.3, response_bytes: 13}"
#: Long enough to see a change, slow enough for any machine.
PATIENT = "{connections: 10, rate: 60, duration_s: 11, warmup_s: 0.3}"


@pytest.fixture(scope="module")
def closed(lab: Laboratory) -> Run:
    return lab.measure("closed", definition(CLOSED, "refuses", "shortens"))


@pytest.fixture(scope="module")
def open_(lab: Laboratory) -> Run:
    return lab.measure("open", definition(OPEN, "queues", "shortens"))


@pytest.fixture(scope="module")
def patient(lab: Laboratory) -> Run:
    return lab.measure("patient", definition(PATIENT, "slows", takes_s=0.02))


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
    """Nobody said how long it has to be, and pages do change: it makes nobody invalid by itself."""
    liar, honest = (
        lab.trial(closed, "liar", lie="shortens"),
        lab.trial(closed, "honest", lie="shortens"),
    )
    text = reason(liar, "response_changed")
    assert "the answers had 5 bytes instead of 13" in text
    assert "set response_bytes" in text
    assert liar.validity in ("suspect", "invalid")
    assert [check["length"] for check in liar.provenance["checks"]] == [13] * 2
    assert "response_changed" not in codes(honest)


def test_a_body_shorter_than_defined_is_detected(lab: Laboratory, open_: Run) -> None:
    liar, honest = (
        lab.trial(open_, "liar", lie="shortens"),
        lab.trial(open_, "honest", lie="shortens"),
    )
    assert "the answers had 5 bytes instead of 13" in reason(liar, "response_size")
    assert [check["problem"] for check in liar.provenance["checks"]] == [None] * 2
    assert not {"response_size", "response_changed"} & codes(honest)
    lab.check_left_out(open_, lie="shortens")


def test_a_rate_that_cannot_be_reached_is_detected(
    lab: Laboratory, open_: Run, patient: Run
) -> None:
    liar = lab.trial(open_, "liar", lie="queues")
    text = reason(liar, "underdelivered")
    assert "of the offered 400/s was answered correctly, the server is saturated" in text
    assert "search for the capacity" in text
    assert "tool_bound" not in codes(liar)
    lab.check_left_out(open_, lie="queues")
    # One hiccup of a busy machine at the end of the short load would be enough.
    assert "underdelivered" not in codes(lab.trial(patient, "honest", lie="slows"))


def test_a_server_that_slows_down_is_detected(lab: Laboratory, patient: Run) -> None:
    liar, honest = (
        lab.trial(patient, "liar", lie="slows"),
        lab.trial(patient, "honest", lie="slows"),
    )
    text = reason(liar, "no_steady_state")
    assert text.startswith("the p50 of the last third is ")
    assert "above that of the first" in text
    assert liar.validity in ("suspect", "invalid")
    assert not {"no_steady_state", "warm_up_too_short"} & codes(honest)
