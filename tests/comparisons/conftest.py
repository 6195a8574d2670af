"""Comparisons start from the project, its benchmark and its commits."""

from pathlib import Path

import pytest

from orchestrator.benchmarks.models import Commit, Project
from tests.support.factories import DEFINITION, Personas
from tests.support.world import World


@pytest.fixture
def source() -> str:
    """The definition of the benchmark; a file that needs another one overrides this."""
    return DEFINITION


@pytest.fixture
def world(personas: Personas, data_dir: Path, tmp_path: Path, source: str) -> World:
    return World.make(personas, tmp_path, source=source)


@pytest.fixture
def project(world: World) -> Project:
    return world.project


@pytest.fixture
def commits(world: World) -> list[Commit]:
    return world.commits
