"""What to break and when, for tests of faults."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from orchestrator.runs.models import Run
from tests.support.engine import Engine
from tests.support.factories import Personas, make_run
from tests.support.netns import NamespaceHost
from tests.support.well import assert_all_is_well

#: Whether to break it for longer and in more ways than CI has the time for.
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
    """Parameters `placement` and `place`: what to ask for, and which host to break.

    The short form has only the first of those that are named.
    """
    names = [short, *others] if FULL else [short]
    cases = [_VICTIMS[name] for name in names]
    return pytest.mark.parametrize(("placement", "place"), cases, ids=names)


def ask_for_several(team: Personas, shas: Sequence[str]) -> list[Run]:
    """Runs that have to wait for each other's hosts, a and b."""
    wanted = (TOGETHER, ALONE, {"hosts": ("b",)}, TOGETHER) if FULL else (TOGETHER, ALONE)
    return [make_run(team.alice, shas, rounds=ROUNDS, **placement) for placement in wanted]


def wait_for_a_measurement(engine: Engine, hosts: Iterable[NamespaceHost]) -> None:
    """Until a load is being put right now, by the journal of the host that puts it."""
    hosts = list(hosts)
    engine.wait_for(lambda: any(is_measuring(host) for host in hosts))


def assert_all_finish(engine: Engine, hosts: Sequence[NamespaceHost], runs: Sequence[Run]) -> None:
    """Every run ends as if there had been no fault, and nothing is left of any."""
    ended = [engine.finish(run, timeout_s=180) for run in runs]
    assert [(run.state, run.message) for run in ended] == [("finished", "")] * len(runs)
    assert_all_is_well(hosts, runs)


def is_measuring(host: NamespaceHost) -> bool:
    return any(step.events[-1].get("phase") == "measuring" for step in host.journals())
