"""Where paths are allowed as repositories, Pitwall's own folder still is none of them."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.refs import get_mirror_path, open_repository
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import Personas, make_repository


def test_the_mirror_of_another_team_cannot_be_read(
    personas: Personas, tmp_path: Path, data_dir: Path
) -> None:
    make_repository(tmp_path / "origin", [{"a.txt": "secret of red"}])
    red = create_project_at(personas.alice, tmp_path / "origin")
    open_repository(red).fetch()
    mirror = get_mirror_path(red)
    assert mirror.is_dir()
    link = tmp_path / "link.git"
    link.symlink_to(mirror)
    for place in (mirror, link, tmp_path / "origin" / ".." / "data" / "repositories" / mirror.name):
        blue = create_project_at(personas.mallory, place)
        with pytest.raises(InvalidRequestError, match="Pitwall's own data folder"):
            open_repository(blue).fetch()
        assert not get_mirror_path(blue).exists() or not open_repository(blue).tips()


def create_project_at(member: Any, place: Path) -> Project:
    slug = f"p{Project.objects.count()}"
    return Project.objects.create(
        team=member.team, slug=slug, name=slug, repository_url=str(place), default_branch="main"
    )
