"""Every test here breaks something under jobs of the real engine on real hosts.

What `make test` runs is the short form; PITWALL_CHAOS=full (`make chaos`) breaks it for longer and
in more ways (tests/support/faults.py).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine import Engine, running_engine, server
from tests.support.factories import Personas, make_definition, make_personas, make_project
from tests.support.fleet import ANYWHERE, add_hosts
from tests.support.netns import NamespaceHost, run_hosts

#: Trials so long that a fault can hit one; the rest of what a job does is as short as it can be.
BENCHMARK = ANYWHERE.replace("duration_s: 0.6", "duration_s: 1.2")


@pytest.fixture
def team(transactional_db: None) -> Personas:
    return make_personas()


@pytest.fixture
def hosts(
    request: pytest.FixtureRequest, tmp_path: Path, team: Personas
) -> Iterator[list[NamespaceHost]]:
    """Two hosts, or what the test's parameter says of them."""
    with run_hosts(tmp_path, **{"count": 2, **getattr(request, "param", {})}) as running:
        add_hosts(team.alice, running)
        yield running


@pytest.fixture
def shas(tmp_path: Path, team: Personas) -> list[str]:
    """Two commits of the benchmark `hello`."""
    project, shas = make_project(team.alice, tmp_path / "origin", [server(), server(start="#")])
    make_definition(team.alice, project, source=BENCHMARK)
    return shas


@pytest.fixture
def engine(hosts: list[NamespaceHost], tmp_path: Path) -> Iterator[Engine]:
    """Started after the hosts, so that it ends before them."""
    with running_engine(tmp_path) as running:
        yield running
