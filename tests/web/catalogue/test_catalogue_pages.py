"""Running a suite of the catalogue: no repository, project or benchmark of the team is needed."""

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.catalogue import list_slugs, load_suite
from orchestrator.benchmarks.models import Benchmark, Project
from orchestrator.runs.models import Run
from tests.support.fetches import run_fetches
from tests.support.html_pages import element, elements, get_text, values
from tests.support.world import World

HTMX = {"HTTP_HX_REQUEST": "true"}


def _run(client: Client, suite: str, **data: str) -> str:
    answer = client.post(reverse("catalogue-run", args=[suite]), data)
    assert answer.status_code == 302, answer.content.decode()
    return str(answer.headers["Location"])


def test_a_suite_is_run_with_its_commit_and_the_only_host(world: World, alice: Client) -> None:
    address = _run(alice, "hello")
    page = alice.get(address)
    form = element(page, "form.with-panel")
    assert values(form, "[name=benchmark] option[selected]") == ["hello/hello"]
    assert values(form, "[name=baseline], [name=contender]") == ["", "main"]
    assert values(form, "[name=hosts][checked]") == ["here"]

    sent = {"benchmark": "hello/hello", "baseline": "main", "hosts": ["here"]}
    assert "Fetching" in get_text(alice.post(reverse("run-preview"), sent, **HTMX))
    assert run_fetches() == 1
    assert "1 case × 7 trials" in get_text(alice.post(reverse("run-preview"), sent, **HTMX))
    started = alice.post(reverse("run-new"), sent)
    run = Run.objects.latest("created_at")
    assert started.headers["Location"] == reverse("run", args=[run.pk])
    assert [each.commit.subject for each in run.variants.all()] == ["The suite hello"]


def test_a_suite_that_runs_again_keeps_its_project_and_changes(world: World, alice: Client) -> None:
    _run(alice, "hello")
    first = Benchmark.objects.get(project__slug="hello")
    assert _run(alice, "hello") == _run(alice, "hello")
    assert first.definitions.count() == 1
    assert Project.objects.filter(repository_url="catalogue:hello").count() == 1


def test_a_taken_short_name_gets_a_suffix(world: World, alice: Client) -> None:
    Project.objects.update(slug="hello")
    assert "benchmark=hello-suite%2Fhello" in _run(alice, "hello")


def test_a_small_version_selects_its_cases_and_saves_the_reports(
    world: World, alice: Client
) -> None:
    address = _run(alice, "protocols", small="1")
    benchmark = Benchmark.objects.get(slug="protocols-small")
    definition = benchmark.definitions.get()

    assert definition.spec["rounds"] == 3
    form = alice.get(address).context["form"]
    assert form.choice.picked != form.choice.grid.everything
    assert benchmark.reports.exists()
    assert "benchmark=protocols%2Fprotocols&" in _run(alice, "protocols") + "&"
    assert Project.objects.filter(repository_url="catalogue:protocols").count() == 1
    refused = alice.post(reverse("catalogue-run", args=["hello"]), {"small": "1"})
    assert refused.status_code == 409
    assert "has no small version" in get_text(refused)


@pytest.mark.parametrize("suite", list_slugs())
def test_every_suite_can_be_run(suite: str, world: World, alice: Client) -> None:
    small = {"small": "1"} if load_suite(suite).miniature else {}
    page = alice.get(_run(alice, suite, **small))
    assert page.status_code == 200
    assert page.context["choice"].cases


def test_viewers_and_strangers_cannot_run_suites_of_the_team(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    address = reverse("catalogue-run", args=["hello"])
    assert bob.post(address).status_code == 403
    assert not elements(bob.get(reverse("catalogue")), f'form[action="{address}"]')
    assert alice.post(reverse("catalogue-run", args=["nothing"])).status_code == 404
    assert mallory.post(address).status_code == 302
    assert Project.objects.get(slug="hello").team == world.personas.mallory.team
