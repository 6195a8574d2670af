"""Where paths are allowed as repositories, Pitwall's own folder still is none of them."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.refs import mirror_of, repository_of
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import Personas, make_repository


def test_the_mirror_of_another_team_cannot_be_read(
    personas: Personas, tmp_path: Path, data_dir: Path
) -> None:
    make_repository(tmp_path / "origin", [{"a.txt": "secret of red"}])
    red = project_of(personas.alice, tmp_path / "origin")
    repository_of(red).fetch()
    mirror = mirror_of(red)
    assert mirror.is_dir()
    link = tmp_path / "link.git"
    link.symlink_to(mirror)
    for place in (mirror, link, tmp_path / "origin" / ".." / "data" / "repositories" / mirror.name):
        blue = project_of(personas.mallory, place)
        with pytest.raises(InvalidRequestError, match="Pitwall's own data folder"):
            repository_of(blue).fetch()
        assert not mirror_of(blue).exists() or not repository_of(blue).tips()


def project_of(member: Any, place: Path) -> Project:
    slug = f"p{Project.objects.count()}"
    return Project.objects.create(
        team=member.team, slug=slug, name=slug, repository_url=str(place), default_branch="main"
    )
