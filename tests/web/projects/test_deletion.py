"""A project and a benchmark are deleted on their pages, and restored on the page Deleted."""

from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Benchmark, Project
from orchestrator.benchmarks.sharing import set_public
from tests.support.html_pages import get_text, values
from tests.support.world import World

DELETED = reverse("deleted")
PROJECT = reverse("project-delete", args=["server"])
BENCHMARK = reverse("benchmark-delete", args=["server", "hello"])


def test_a_benchmark_is_deleted_and_restored(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    page = reverse("benchmark", args=["server", "hello"])
    assert BENCHMARK in values(alice.get(page), "a[data-confirm]", "href")
    assert BENCHMARK not in bob.get(page).content.decode()
    for client, status in ((bob, 403), (mallory, 404)):
        assert client.get(BENCHMARK).status_code == status
        assert client.post(BENCHMARK).status_code == status

    question = get_text(alice.get(BENCHMARK))

    assert "Delete the benchmark “Hello”?" in question
    assert "Runs 1" in question
    assert "restore it for 14 days" in question
    assert alice.get(page).status_code == 200, "it only asks"
    answer = alice.post(BENCHMARK, follow=True)
    assert answer.redirect_chain == [(DELETED, 302)]
    assert "The benchmark “Hello” was deleted." in get_text(answer)
    assert "Hello hello Benchmark of Server" in get_text(answer)
    for gone in (page, BENCHMARK, reverse("run", args=[world.run.pk])):
        assert alice.get(gone).status_code == 404
    assert page not in alice.get(reverse("benchmarks")).content.decode()
    assert "Hello" not in get_text(alice.get(reverse("runs")))
    assert "Hello" not in alice.get(reverse("run-new")).content.decode()
    restore = reverse("benchmark-restore", args=[Benchmark.with_deleted.get().pk])
    assert bob.get(DELETED).status_code == 403
    assert bob.post(restore).status_code == 403
    assert mallory.post(restore).status_code == 404
    assert "Hello" not in get_text(mallory.get(DELETED))
    back = alice.post(restore, follow=True)
    assert back.redirect_chain == [(page, 302)]
    assert "was restored" in get_text(back)
    assert alice.get(reverse("run", args=[world.run.pk])).status_code == 200
    assert "Nothing was deleted" in get_text(alice.get(DELETED))


def test_a_public_project_disappears_for_visitors_too(
    world: World, alice: Client, bob: Client, mallory: Client, client: Client
) -> None:
    set_public(member=world.alice, project=world.project, public=True)
    place = "/public/red/server/"
    assert client.get(place).status_code == 200
    for each, status in ((bob, 403), (mallory, 404)):
        assert each.post(PROJECT).status_code == status
    question = get_text(alice.get(PROJECT))
    assert "its public pages, badges and charts disappear" in question
    assert "Benchmarks 1 hello" in question

    alice.post(PROJECT)

    for gone in (place, f"{place}runs/{world.run.pk}/"):
        assert client.get(gone).status_code == 404
    assert alice.get(reverse("project", args=["server"])).status_code == 404
    assert "Server" not in get_text(alice.get(reverse("sharing")))
    alice.post(reverse("project-restore", args=[Project.with_deleted.get().pk]))
    assert client.get(place).status_code == 200


def test_a_deleted_benchmark_of_a_public_project_is_not_public(
    world: World, alice: Client, client: Client
) -> None:
    set_public(member=world.alice, project=world.project, public=True)
    run = f"/public/red/server/runs/{world.run.pk}/"
    history = "/public/red/server/history/?benchmark=server/hello"
    assert client.get(run).status_code == 200
    assert client.get(history).status_code == 200
    alice.post(BENCHMARK)
    assert client.get(run).status_code == 404
    assert client.get(history).status_code == 404
    assert "Hello" not in client.get("/public/red/server/").content.decode()


def test_a_taken_short_name_is_explained(world: World, alice: Client) -> None:
    alice.post(PROJECT)
    pk = Project.with_deleted.get().pk
    again = {"slug": "server", "repository_url": world.project.repository_url}
    alice.post(reverse("project-new"), {**again, "default_branch": "main"})
    answer = alice.post(reverse("project-restore", args=[pk]))
    assert answer.status_code == 409
    assert "The team has another project server now" in answer.content.decode()
