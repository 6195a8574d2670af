"""A project's name, repository and default branch are edited; its short name is not."""

from typing import Any

from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.refs import get_mirror_path
from tests.support.factories import make_repository
from tests.support.fetches import run_fetches
from tests.support.html_pages import field_error, get_text, values
from tests.support.world import World

PAGE = reverse("project", args=["server"])
EDIT = reverse("project-repository", args=["server"])


def _data(world: World, **changes: str) -> dict[str, Any]:
    project = world.project
    return {
        "name": project.name,
        "repository_url": project.repository_url,
        "default_branch": project.default_branch,
        **changes,
    }


def test_a_new_name_fetches_nothing(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    run_fetches()
    assert EDIT in values(alice.get(PAGE), "a", "href")
    assert EDIT not in values(bob.get(PAGE), "a", "href")
    assert {"Server", "main"} <= {*values(alice.get(EDIT), "input[value]")}
    renamed = _data(world, name="File server")
    assert bob.post(EDIT, renamed).status_code == 403
    assert mallory.post(EDIT, renamed).status_code == 404
    assert "This field is required" in field_error(alice.post(EDIT, _data(world, name=" ")), "name")

    page = alice.post(EDIT, renamed, follow=True)

    assert "Saved." in get_text(page)
    assert "File server project server" in get_text(page)
    project = Project.objects.get()
    assert (project.name, project.slug) == ("File server", "server")
    assert Fetch.objects.get().next_at is None
    assert AuditEntry.objects.filter(action="project.renamed", subject="File server").exists()


def test_another_repository_has_its_own_mirror_and_results_remain(
    world: World, alice: Client
) -> None:
    former = get_mirror_path(world.project)
    [other] = make_repository(world.repository.parent / "moved", [{"another": "1"}])
    data = _data(world, repository_url=str(world.repository.parent / "moved"))

    alice.post(EDIT, data)

    project = Project.objects.get()
    assert (project.branches, project.fetched_at) == ([], None)
    assert Fetch.objects.get().state == "queued"
    run_fetches()
    project.refresh_from_db()
    assert get_mirror_path(project) != former
    assert project.branches == [["main", other]]
    # The commits of the former repository have no place in the new history, and their runs stay.
    assert set(project.commits.filter(position=None).values_list("sha", flat=True)) == {*world.shas}
    assert alice.get(reverse("run", args=[world.run.pk])).status_code == 200
    assert alice.post(EDIT, {**data, "repository_url": "x"}).status_code == 422
