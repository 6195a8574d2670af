"""What every test may ask for: personas of two teams. Fixtures for machines are in `support`."""

import pytest

from tests.support.factories import Personas, make_personas


@pytest.fixture
def personas(db: None) -> Personas:
    """alice (admin) and bob (viewer) of team red, mallory (admin) of team blue."""
    return make_personas()
