"""The agent leaves the measured CPUs, and its children do not inherit that."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.hostagent.platform import affinity
from agents.hostagent.step.plan import Limits
from tests.agents.platform.test_limits import run

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two CPUs to choose from",
)


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    monkeypatch.setattr(affinity, "_allowed", None)
    before = os.sched_getaffinity(0)
    yield before
    os.sched_setaffinity(0, before)


def test_children_of_a_pinned_agent_run_on_all_cpus_or_on_theirs(
    allowed: set[int], tmp_path: Path
) -> None:
    first, last = min(allowed), max(allowed)
    affinity.pin_agent([first])
    assert affinity.read_own_cpus() == {first}
    assert run(tmp_path, "")[2]["cpus"] == sorted(allowed)
    assert run(tmp_path, "", Limits(cpus=(last,)))[2]["cpus"] == [last]
    affinity.pin_agent([])
    assert affinity.read_own_cpus() == allowed


def test_an_agent_that_was_never_pinned_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some containers refuse the call."""
    calls: list[object] = []
    monkeypatch.setattr(affinity, "_allowed", None)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *given: calls.append(given))
    affinity.pin_agent([])
    affinity.set_child_affinity(None)
    assert calls == []


def test_a_system_that_refuses_leaves_the_agent_where_it_is(allowed: set[int]) -> None:
    affinity.pin_agent([4095])
    assert affinity.read_own_cpus() == allowed
