"""The reasons of a trial say whether the measured code or its environment failed."""

import pytest

from agents.hostagent.protocol import FAILURES
from orchestrator.loadtools.model import Level
from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.loadtools.trial_outcomes import (
    BROKEN_CODES,
    classify_failure,
    classify_invalid,
)
from orchestrator.stats.block_outcomes import Outcome


@pytest.mark.parametrize(
    ("codes", "outcome"),
    [
        (["server_died"], "broken"),
        (["http_errors", "foreign_process"], "broken"),
        (["underdelivered"], "saturated"),
        (["underdelivered", "http_errors"], "broken"),
        # The load tool or another process may be the cause.
        (["underdelivered", "tool_bound"], "void"),
        (["http_errors", "rebooted"], "void"),
        (["throttled_by_heat"], "void"),
        # Soft reasons together are no failure of the code, and excuse none.
        (["several_flags", "steal", "heating"], "void"),
        (["server_died", "several_flags", "steal", "heating"], "broken"),
        (["a_code_of_a_newer_version"], "void"),
        ([], "void"),
    ],
)
def test_an_invalid_trial_is_broken_saturated_or_void(codes: list[str], outcome: str) -> None:
    assert classify_invalid(codes) == outcome


def test_a_failed_trial_is_broken_if_the_code_is_the_cause() -> None:
    assert set(FAILURES) >= BROKEN_CODES
    assert classify_failure("build_failed") is Outcome.BROKEN
    assert classify_failure("tool_missing") is Outcome.VOID
    assert classify_failure("") is Outcome.VOID


def test_only_hard_reasons_have_an_outcome() -> None:
    soft = [rule for rule in THRESHOLDS.values() if rule.level != Level.INVALID]
    assert {rule.outcome for rule in soft} == {Outcome.VOID}
