"""Addresses of commits on the forge of a repository."""

import pytest

from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.forges.forge_links import load_forge_links
from orchestrator.forges.models import Connection
from tests.support.world import World

OLD, NEW = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("address", "commit", "diff"),
    [
        (
            "https://github.com/acme/shop.git",
            f"https://github.com/acme/shop/commit/{NEW}",
            f"https://github.com/acme/shop/compare/{OLD}...{NEW}",
        ),
        (
            "git@gitlab.com:acme/group/shop.git",
            f"https://gitlab.com/acme/group/shop/-/commit/{NEW}",
            f"https://gitlab.com/acme/group/shop/-/compare/{OLD}...{NEW}",
        ),
        (
            "ssh://git@codeberg.org:22/acme/shop",
            f"https://codeberg.org/acme/shop/commit/{NEW}",
            f"https://codeberg.org/acme/shop/compare/{OLD}...{NEW}",
        ),
        (
            "https://user:secret@github.com/acme/shop/",
            f"https://github.com/acme/shop/commit/{NEW}",
            f"https://github.com/acme/shop/compare/{OLD}...{NEW}",
        ),
    ],
)
def test_repositories_of_public_forges_have_links(
    world: World, address: str, commit: str, diff: str
) -> None:
    links = load_forge_links(Project(repository_url=address, pk=0))

    assert links is not None
    assert links.build_commit_url(NEW) == commit
    assert links.build_diff_url(OLD, NEW) == diff


@pytest.mark.parametrize(
    "address",
    [
        "",
        "/srv/git/shop",
        "https://git.example.org/acme/shop",
        "https://github.com",
        "javascript:x",
    ],
)
def test_other_repositories_have_none(world: World, address: str) -> None:
    assert load_forge_links(Project(repository_url=address, pk=0)) is None


def test_a_connected_forge_of_another_host_has_links(world: World) -> None:
    Project.objects.update(repository_url="https://git.example.org/acme/shop.git")
    Connection.objects.create(
        project=world.project, kind="gitlab", api_url="https://git.example.org/api/v4",
        repository="acme/shop", sealed_secret=b"x", created_at=utc_now(),
    )  # fmt: skip
    world.project.refresh_from_db()
    links = load_forge_links(world.project)

    assert links is not None
    assert (links.title, links.repository_url) == ("GitLab", "https://git.example.org/acme/shop")
