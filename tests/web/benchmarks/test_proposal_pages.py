"""The wizard: it inspects a repository, proposes a definition, and tries it before it is saved."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Benchmark, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run
from tests.support.engine import server
from tests.support.factories import DEFINITION, make_repository
from tests.support.fetches import fetch_now
from tests.support.html_pages import element, field_error, get_text, values
from tests.support.world import World

MATRIX = DEFINITION.replace(
    "connections: [4]", 'connections: [4, 8]\n  system: ["a b", other]'
).replace('"--port"', '"--system", "{system}", "--port"')


@pytest.fixture
def shop(world: World, tmp_path: Path) -> Project:
    """A project whose repository has a server, and nothing of Pitwall."""
    make_repository(tmp_path / "shop", [server()])
    project = create_project(
        member=world.alice, slug="shop", name="Shop", repository_url=str(tmp_path / "shop")
    )
    fetch_now(project)
    return project


def _post(client: Client, **changes: Any) -> Any:
    data = {"project": "shop", "slug": "shop", "source": MATRIX, "host": "here", **changes}
    return client.post(reverse("benchmark-new"), data)


def test_a_repository_is_inspected(shop: Project, alice: Client) -> None:
    page = alice.get(reverse("benchmark-new"), {"inspect": "shop"})
    fields = page.context["form"]

    assert (fields["project"].value(), fields["slug"].value()) == ("shop", "shop")
    source = fields["source"].value()
    assert source.startswith("# yaml-language-server: $schema=")
    assert "'{python}', server.py, --bind, '{bind}', --port, '{port}'" in source
    card = get_text(element(page, "section.card:has(.guesses)"))
    assert "Proposal for Shop" in card
    assert "subject.start from server.py" in card
    assert "Valid" in get_text(element(page, "#review"))
    assert values(page, "select[name=host] option") == ["here"]


def test_a_repository_without_a_server_gives_the_example(world: World, alice: Client) -> None:
    page = alice.get(reverse("benchmark-new"), {"inspect": "server"})
    assert "No proposal for" in get_text(page)
    assert "Hello, world" in page.context["form"]["source"].value()


def test_a_failed_fetch_is_explained(world: World, alice: Client, tmp_path: Path) -> None:
    create_project(
        member=world.alice, slug="gone", name="Gone", repository_url=str(tmp_path / "gone")
    )
    page = alice.get(reverse("benchmark-new"), {"inspect": "gone"})
    assert page.status_code == 200
    assert "could not be fetched" in get_text(page) or "There is no commit" in get_text(page)
    assert values(page, ".card a:not(.term)", "href") == [reverse("project", args=["gone"])]


def test_one_trial_is_started_before_the_benchmark_is_saved(shop: Project, alice: Client) -> None:
    answer = _post(alice, **{"try": "1"})
    run = Run.objects.latest("created_at")
    benchmark = Benchmark.objects.get(slug="shop")

    assert answer.headers["Location"] == reverse("run", args=[run.pk])
    assert benchmark.is_draft
    trial = run.jobs.get().trials.get()
    assert trial.case.parameters == {"connections": 4, "system": "a b"}
    assert run.definition.source == MATRIX
    assert "This run tries a draft." in get_text(alice.get(reverse("run", args=[run.pk])))
    for listing in ("benchmarks", "overview"):
        assert reverse("benchmark", args=["shop", "shop"]) not in values(
            alice.get(reverse(listing)), "a[href]", "href"
        )
    assert "shop/shop" not in values(alice.get(reverse("run-new")), "[name=benchmark] option")

    page = alice.get(reverse("benchmark", args=["shop", "shop"]))
    assert "This is a draft" in get_text(page)
    assert page.context["form"]["source"].value() == MATRIX
    # A second trial of a changed text, and then it is saved.
    address = reverse("benchmark", args=["shop", "shop"])
    changed = MATRIX.replace("title: Hello", "title: Shop")
    again = alice.post(address, {"source": changed, "host": "here", "try": "1"})
    assert again.headers["Location"] == reverse("run", args=[Run.objects.latest("created_at").pk])
    assert alice.post(address, {"source": changed}).status_code == 302
    benchmark.refresh_from_db()
    assert (benchmark.is_draft, benchmark.title) == (False, "Shop")
    assert benchmark.definitions.count() == 2
    assert "Run one trial" not in get_text(alice.get(address))


def test_a_draft_is_saved_from_the_form_of_a_new_benchmark(shop: Project, alice: Client) -> None:
    _post(alice, **{"try": "1"})
    assert _post(alice).headers["Location"] == reverse("benchmark", args=["shop", "shop"])
    assert not Benchmark.objects.get(slug="shop").is_draft


def test_nothing_typed_is_lost_if_the_trial_cannot_start(
    shop: Project, world: World, alice: Client
) -> None:
    wrong = MATRIX.replace("duration_s: 0.6", "duraton_s: 0.6")
    page = _post(alice, source=wrong, **{"try": "1"})
    assert page.status_code == 422
    assert page.context["form"]["source"].value() == wrong
    assert field_error(page, "source")

    _post(alice)
    page = _post(alice, **{"try": "1"})
    assert "already has a benchmark shop" in get_text(page)
    assert Run.objects.filter(definition__benchmark__slug="shop").count() == 0

    Host.objects.update(state="retired")
    page = _post(alice, slug="other", **{"try": "1"})
    assert "here" in field_error(page, "host")
    assert not Benchmark.objects.filter(slug="other").exists()
    assert _post(alice, slug="other").status_code == 302


def test_viewers_and_strangers_try_nothing(
    shop: Project, alice: Client, bob: Client, mallory: Client
) -> None:
    assert _post(bob, **{"try": "1"}).status_code == 403
    assert _post(mallory, **{"try": "1"}).status_code == 422
    assert mallory.get(reverse("benchmark-new"), {"inspect": "shop"}).status_code == 404
    assert not Benchmark.objects.filter(slug="shop").exists()
    _post(alice, **{"try": "1"})
    address = reverse("benchmark", args=["shop", "shop"])
    assert mallory.get(address).status_code == 404
    assert bob.post(address, {"source": MATRIX, "host": "here", "try": "1"}).status_code == 403
