"""Faults for tests: what to break, and when."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from orchestrator.runs.models import Run
from tests.support.engine import Engine, assert_measured
from tests.support.factories import Personas, make_run
from tests.support.fleet_assertions import assert_all_is_well
from tests.support.netns import NamespaceHost

#: Whether to cause longer and more faults than CI has time for.
FULL = os.environ.get("PITWALL_CHAOS") == "full"
#: Two trials each.
ROUNDS = 2 if FULL else 1

#: Requests for one job: on one host, or with the load on another one.
ALONE: Mapping[str, Any] = {"hosts": ("a",)}
TOGETHER: Mapping[str, Any] = {
    "hosts": (),
    "placements": ({"target": "host:a", "generator": "host:b"},),
}
_VICTIMS = {"alone": (ALONE, 0), "target": (TOGETHER, 0), "generator": (TOGETHER, 1)}


def each_victim(short: str, *others: str) -> pytest.MarkDecorator:
    """Return the parameters `placement` and `place`: what to request, and which host to break.

    The short form has only the first of the named ones.
    """
    names = [short, *others] if FULL else [short]
    cases = [_VICTIMS[name] for name in names]
    return pytest.mark.parametrize(("placement", "place"), cases, ids=names)


def ask_for_several(team: Personas, shas: Sequence[str]) -> list[Run]:
    """Request runs that have to wait for each other's hosts, a and b."""
    wanted = (TOGETHER, ALONE, {"hosts": ("b",)}, TOGETHER) if FULL else (TOGETHER, ALONE)
    return [make_run(team.alice, shas, rounds=ROUNDS, **placement) for placement in wanted]


def wait_for_a_measurement(engine: Engine, hosts: Iterable[NamespaceHost]) -> None:
    """Wait until a load is running, according to the journal of its host."""
    hosts = list(hosts)
    engine.wait_for(lambda: any(is_measuring(host) for host in hosts))


def assert_all_finish(engine: Engine, hosts: Sequence[NamespaceHost], runs: Sequence[Run]) -> None:
    """Check that every run ends as if there had been no fault, and leaves nothing behind."""
    for run in runs:
        assert_measured(engine.finish(run, timeout_s=180))
    assert_all_is_well(hosts, runs)


def is_measuring(host: NamespaceHost) -> bool:
    return any(step.events[-1].get("phase") == "measuring" for step in host.journals())
