"""What the tests of the pages start from."""

from pathlib import Path

import pytest
from django.test import Client

from orchestrator.accounts.members import Member
from tests.support.factories import Personas
from tests.support.fetches import PatientClient
from tests.support.world import World


@pytest.fixture(autouse=True)
def _own_data(data_dir: Path) -> None:
    """Also for tests without a world."""


@pytest.fixture
def world(world: World) -> World:
    """With a run of all three commits, the last one slower."""
    world.run = world.measure_run(1000, 1001, 850, rounds=6)
    return world


def signed_in(member: Member) -> Client:
    client = PatientClient()
    client.force_login(member.user)
    return client


@pytest.fixture
def alice(personas: Personas) -> Client:
    """The browser of alice, an owner of team red."""
    return signed_in(personas.alice)


@pytest.fixture
def bob(personas: Personas) -> Client:
    """The browser of bob, who may only look at what team red does."""
    return signed_in(personas.bob)


@pytest.fixture
def mallory(personas: Personas) -> Client:
    """The browser of mallory, of another team."""
    return signed_in(personas.mallory)
