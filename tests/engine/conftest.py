"""Every test here drives the whole engine: PostgreSQL, Redis, Celery, agent, oha."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine import Engine, running_engine
from tests.support.factories import Personas, make_personas


@pytest.fixture
def team(transactional_db: None) -> Personas:
    return make_personas()


@pytest.fixture
def engine(team: Personas, tmp_path: Path) -> Iterator[Engine]:
    with running_engine(tmp_path) as running:
        yield running
