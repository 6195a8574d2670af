"""What comparisons start from: team red's project with three commits, one benchmark, one host."""

from pathlib import Path

import pytest

from orchestrator.benchmarks.models import Commit, Project
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_local_host,
    make_project,
)


@pytest.fixture
def source() -> str:
    """The definition of the benchmark; a file that wants another one overrides this."""
    return DEFINITION


@pytest.fixture
def project(personas: Personas, tmp_path: Path, source: str) -> Project:
    found, _ = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, found, source=source)
    make_local_host(personas.alice)
    return found


@pytest.fixture
def commits(project: Project) -> list[Commit]:
    return list(project.commits.order_by("position"))
