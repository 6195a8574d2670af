"""What the tests of hosts start from."""

import pytest

from orchestrator.fleet.models import Host
from tests.support.factories import Personas, make_local_host


@pytest.fixture
def host(personas: Personas) -> Host:
    """A ready host of team red."""
    return make_local_host(personas.alice)
