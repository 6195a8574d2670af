"""Projects, benchmarks and their definitions."""

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Benchmark, Case, Definition, Fetch, Project
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_project,
    make_repository,
)
from tests.support.fetches import run_fetches
from tests.support.html_pages import field_error, get_text, values
from tests.support.world import World

HELLO = ("server", "hello")


def test_a_new_version_is_saved(world: World, alice: Client) -> None:
    source = DEFINITION.replace("rounds: 5", "rounds: 9")
    answer = alice.post(reverse("benchmark", args=HELLO), {"source": source})

    assert answer.headers["Location"] == reverse("benchmark", args=HELLO)
    assert list(Definition.objects.values_list("version", flat=True)) == [2, 1]
    older = alice.get(reverse("benchmark", args=HELLO), {"version": "1"}).content.decode()
    assert "rounds: 5" in older
    assert alice.get(reverse("benchmark", args=HELLO), {"version": "7"}).status_code == 404


def test_an_unchanged_definition_creates_no_version(world: World, alice: Client) -> None:
    alice.post(reverse("benchmark", args=HELLO), {"source": DEFINITION.replace("\n", "\r\n")})

    assert Definition.objects.count() == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("duration_s: 0.6", "duration_s: soon", "load.duration_s"),
        ("connections: [4]", "connections: []", "matrix.connections"),
        ("version: 1", "version: [", "Not valid YAML: line"),
    ],
)
def test_an_error_shows_the_path_into_the_file(
    old: str, new: str, words: str, world: World, alice: Client
) -> None:
    source = DEFINITION.replace(old, new)
    answer = alice.post(reverse("benchmark", args=HELLO), {"source": source})

    assert answer.status_code == 422
    assert words in field_error(answer, "source")
    assert new in answer.content.decode()
    assert Definition.objects.count() == 1


def test_a_new_benchmark_is_defined(world: World, alice: Client) -> None:
    data = {"project": "server", "slug": "hello-again", "source": DEFINITION}
    answer = alice.post(reverse("benchmark-new"), data)

    assert answer.headers["Location"] == reverse("benchmark", args=["server", "hello-again"])
    assert alice.get(answer.headers["Location"]).status_code == 200


def test_the_offered_example_is_valid(world: World, alice: Client) -> None:
    source = alice.get(reverse("benchmark-new")).context["form"]["source"].value()
    data = {"project": "server", "slug": "example", "source": source}

    assert alice.post(reverse("benchmark-new"), data).status_code == 302


def test_an_invalid_name_is_shown_at_its_field(world: World, alice: Client) -> None:
    data = {"project": "server", "slug": "Hello World", "source": DEFINITION}
    answer = alice.post(reverse("benchmark-new"), data)

    assert "Expected lower-case letters" in field_error(answer, "slug")


def test_viewers_read_but_do_not_change_definitions(world: World, bob: Client) -> None:
    page = bob.get(reverse("benchmark", args=HELLO)).content.decode()
    changed = bob.post(reverse("benchmark", args=HELLO), {"source": DEFINITION + "\n"})

    assert "<textarea" not in page
    assert "rounds: 5" in page
    assert changed.status_code == 403


def test_a_definition_of_a_stranger_is_refused(world: World, mallory: Client) -> None:
    new = {"project": "server", "slug": "mine", "source": DEFINITION}

    assert mallory.post(reverse("benchmark", args=HELLO), {"source": "x: 1"}).status_code == 404
    assert mallory.post(reverse("benchmark-new"), new).status_code in {404, 422}
    assert Benchmark.objects.count() == 1


def test_a_project_is_added(personas: Personas, alice: Client, tmp_path: Path) -> None:
    make_repository(tmp_path / "code", [{"a": "1"}])
    data = {
        "slug": "code", "name": "", "repository_url": str(tmp_path / "code"),
        "default_branch": "main",
    }  # fmt: skip
    answer = alice.post(reverse("project-new"), data)

    assert answer.headers["Location"] == reverse("project", args=["code"])
    assert "Queued" in alice.get(answer.headers["Location"]).content.decode()
    run_fetches()
    assert "Up to date" in alice.get(answer.headers["Location"]).content.decode()
    assert Project.objects.get().commits.count() == 1


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("no-repository", "Expected a repository address"),
        ("ext::sh -c id", "Expected a repository"),
    ],
)
def test_an_invalid_repository_is_shown_at_its_field(
    address: str, words: str, personas: Personas, alice: Client
) -> None:
    data = {"slug": "code", "name": "", "repository_url": address, "default_branch": "main"}
    answer = alice.post(reverse("project-new"), data)

    assert words in field_error(answer, "repository_url")
    assert not Project.objects.exists()


def test_an_unreadable_repository_is_reported_and_can_be_replaced(
    personas: Personas, alice: Client, bob: Client, mallory: Client, tmp_path: Path
) -> None:
    make_repository(tmp_path / "code", [{"a": "1"}])
    data = {
        "slug": "code", "name": "", "default_branch": "main",
        "repository_url": str(tmp_path / "wrong"),
    }  # fmt: skip
    alice.post(reverse("project-new"), data)
    run_fetches()
    page = alice.get(reverse("project", args=["code"])).content.decode()
    assert "Fetch failed" in page
    assert "git cannot read the repository" in page
    assert "Retry" in page
    change = reverse("project-repository", args=["code"])
    right = {"name": "Code", "repository_url": str(tmp_path / "code"), "default_branch": "main"}
    assert bob.post(change, right).status_code == 403
    assert mallory.post(change, right).status_code == 404
    assert alice.post(change, {**right, "repository_url": "x"}).status_code == 422
    assert alice.post(change, right).status_code == 302
    run_fetches()
    state = reverse("project-fetch", args=["code"])
    assert "Up to date" in alice.get(state).content.decode()
    assert mallory.get(state).status_code == 404
    now = reverse("project-fetch-now", args=["code"])
    assert bob.post(now).status_code == 403
    assert mallory.post(now).status_code == 404
    assert alice.post(now).status_code == 302
    assert "Queued" in alice.get(state).content.decode()
    clone = reverse("project-reclone", args=["code"])
    assert bob.post(clone).status_code == 403
    assert mallory.post(clone).status_code == 404
    assert alice.post(clone).status_code == 302
    assert Fetch.objects.get().clone


def test_a_viewer_cannot_add_a_project(personas: Personas, bob: Client, tmp_path: Path) -> None:
    make_project(personas.alice, tmp_path / "code")
    data = {"slug": "x", "name": "", "repository_url": "https://h/x", "default_branch": "main"}

    assert bob.post(reverse("project-new"), data).status_code == 403


def test_a_former_case_is_hidden_and_shown_again(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    page = reverse("benchmark", args=["server", "hello"])
    make_definition(
        world.alice,
        world.project,
        source=DEFINITION.replace("connections: [4]", "connections: [4, 8]"),
    )
    world.measure_run(1000)
    assert "Former cases" not in get_text(alice.get(page))
    make_definition(world.alice, world.project)
    case = Case.objects.get(parameters={"connections": 8})
    change = reverse("case-visibility", args=["server", "hello", case.key])
    history = f"{reverse('history')}?benchmark=server/hello"
    assert change in values(alice.get(page), "form", "action")
    assert change not in values(bob.get(page), "form", "action")
    assert case.key in values(alice.get(history), "[name=case]")
    for client, status in ((bob, 403), (mallory, 404)):
        assert client.post(change, {"hidden": "true"}).status_code == status

    hidden = alice.post(change, {"hidden": "true"}, follow=True)

    assert "is hidden." in get_text(hidden)
    assert case.key not in values(alice.get(history), "[name=case]")
    assert "shown again" in get_text(alice.post(change, {"hidden": "false"}, follow=True))
    assert case.key in values(alice.get(history), "[name=case]")
