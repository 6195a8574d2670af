"""Definitions on the pages: judged, compared, read from the repository, begun with a suite."""

from pathlib import Path

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.catalogue import list_slugs, load_suite
from orchestrator.benchmarks.examples import Example, load_examples
from orchestrator.benchmarks.fetch_requests import UNKNOWN_AGAIN
from orchestrator.benchmarks.models import Benchmark, Definition, Fetch, Project
from orchestrator.runs.models import Run
from tests.support.factories import DEFINITION, commit_files
from tests.support.fetches import fetch_now, run_fetches
from tests.support.html_pages import elements, get_text, values
from tests.support.world import World

HELLO = ("server", "hello")
CHANGED = DEFINITION.replace("rounds: 5", "rounds: 9").replace("[4]", "[4, 8]")


@pytest.fixture
def repository(world: World, tmp_path: Path) -> Path:
    commit_files(tmp_path / "repository", {".pitwall.yaml": DEFINITION}, 4)
    return tmp_path / "repository"


def _import(browser: Client) -> None:
    browser.post(reverse("project-import", args=["server"]), {"path": ".pitwall.yaml"})


def test_a_definition_is_reviewed_without_saving(world: World, bob: Client) -> None:
    good = bob.post(reverse("benchmark-check"), {"source": CHANGED}).content.decode()
    bad = bob.post(reverse("benchmark-check"), {"source": CHANGED.replace(": 9", ": many")})

    assert "Valid." in good
    assert "Cases 2 One round" in get_text(good)
    assert "Line 13" in bad.content.decode()
    assert "rounds" in [get_text(each) for each in elements(bad, "code.break")]
    assert Definition.objects.count() == 1


def test_the_review_lists_files_and_prepare_steps(world: World, bob: Client) -> None:
    more = (
        'files: {seed.sql: "INSERT", "conf/<a>": ""}\n'
        'prepare: [{run: [seed, "{files}/seed.sql"], each: job}, {run: [warm], after: server}]\n'
    )
    page = bob.post(reverse("benchmark-check"), {"source": CHANGED + more}).content.decode()
    assert "files.conf/<a>" in get_text(page)
    page = bob.post(
        reverse("benchmark-check"), {"source": CHANGED + more.replace("<a>", "a")}
    ).content.decode()
    assert "Files seed.sql · conf/a" in get_text(page)
    assert "seed each job, after the services warm each trial, after the server" in get_text(page)


def test_a_definition_is_checked_without_scripts(world: World, alice: Client) -> None:
    for address in (reverse("benchmark", args=HELLO), reverse("benchmark-new")):
        data = {"source": CHANGED, "check": "1", "project": "server", "slug": "x"}
        answer = alice.post(address, data)
        assert answer.status_code == 200
        assert "Valid." in answer.content.decode()
    assert Definition.objects.count() == 1


def test_any_two_versions_are_compared(world: World, alice: Client, bob: Client) -> None:
    alice.post(reverse("benchmark", args=HELLO), {"source": CHANGED})
    alice.post(reverse("benchmark", args=HELLO), {"source": DEFINITION})
    address = reverse("benchmark-diff", args=HELLO)
    newest = bob.get(address)
    whole = bob.get(address, {"from": "1", "to": "3"}).content.decode()

    signs = [line.sign for line in newest.context["lines"]]
    assert signs.count("-") == 2
    assert signs.count("+") == 2
    assert "0 cases added, 1 removed; 1 case keeps its history." in get_text(newest)
    assert "The two versions are identical." in whole
    assert bob.get(address, {"from": "9"}).status_code == 404


def test_versions_in_use_are_marked(world: World, alice: Client) -> None:
    page = alice.get(reverse("benchmark", args=HELLO)).content.decode()
    assert "1 run" in page
    assert "alice" in page


def test_a_definition_is_stored_in_the_repository(
    world: World, repository: Path, alice: Client
) -> None:
    listed = alice.get(reverse("project-import", args=["server"])).content.decode()
    assert ".pitwall.yaml" in listed
    _import(alice)
    page = alice.get(reverse("benchmark", args=["server", "server"])).content.decode()

    assert "Stored in the repository" in page
    assert "<textarea" not in page
    assert ".pitwall.yaml at " in get_text(page)
    refused = alice.post(reverse("benchmark", args=["server", "server"]), {"source": CHANGED})
    assert refused.status_code == 422

    alice.post(reverse("benchmark-repository-definition", args=["server", "server"]))
    assert (
        "<textarea" in alice.get(reverse("benchmark", args=["server", "server"])).content.decode()
    )


def test_a_new_run_names_the_source_of_its_definition(
    world: World, repository: Path, alice: Client
) -> None:
    _import(alice)
    commit_files(repository, {".pitwall.yaml": CHANGED}, 5)
    fetch_now(Project.objects.get())
    data = {"benchmark": "server/server", "baseline": "main~1", "contender": "main",
            "hosts": ["here"], "rounds": ""}  # fmt: skip
    panel = alice.post(reverse("run-preview"), data, HTTP_HX_REQUEST="true")
    assert "A new version, 2, of the definition, for all commits as" in get_text(panel)
    assert Definition.objects.filter(benchmark__slug="server").count() == 1

    alice.post(reverse("run-new"), data)
    run = Run.objects.order_by("-created_at").first()
    assert run is not None
    assert (run.definition.version, run.rounds) == (2, 9)
    page = alice.get(reverse("run", args=[run.pk])).content.decode()
    assert "read from .pitwall.yaml at" in get_text(page)

    broken = CHANGED.replace("rounds: 9", "rounds: many")
    sha = commit_files(repository, {".pitwall.yaml": broken}, 6)
    fetch_now(Project.objects.get())
    panel = alice.post(reverse("run-preview"), data, HTTP_HX_REQUEST="true").content.decode()
    assert f".pitwall.yaml at {sha[:10]}: rounds: expected a valid integer" in panel


def test_a_repository_without_definitions_is_reported(world: World, alice: Client) -> None:
    address = reverse("project-import", args=["server"])
    assert "No definition at" in alice.get(address).content.decode()
    assert "There is no commit" in alice.get(address, {"ref": "nowhere"}).content.decode()
    refused = alice.post(address, {"path": ".pitwall/other.yaml"})
    assert refused.status_code == 422
    assert "There is no file .pitwall/other.yaml" in refused.content.decode()


@pytest.mark.parametrize("slug", list_slugs())
def test_each_suite_is_shown_and_can_be_a_template(slug: str, world: World, alice: Client) -> None:
    suite = load_suite(slug)
    page = alice.get(reverse("catalogue-suite", args=[suite.slug]))
    form = alice.get(reverse("benchmark-new"), {"suite": suite.slug}).context["form"]

    assert suite.review is not None
    assert page.status_code == 200
    assert form["source"].value() == suite.source
    data = {"project": "server", "slug": suite.slug, "source": suite.source}
    assert alice.post(reverse("benchmark-new"), data).status_code == 302


@pytest.mark.parametrize("example", load_examples(), ids=lambda example: example.slug)
def test_each_example_can_be_the_start_of_a_definition(
    example: Example, world: World, alice: Client
) -> None:
    chosen = {"example": example.slug, "project": "server"}
    page = alice.get(reverse("benchmark-new"), chosen)
    fields = page.context["form"]

    assert values(page, "select[name=example] option[selected]") == [example.slug]
    assert values(page, "form[method=get] [name=project]") == ["server"]
    schema, _, source = fields["source"].value().partition("\n")
    assert schema.startswith("# yaml-language-server: $schema=")
    assert source == example.source
    assert fields["project"].value() == "server"
    data = {"project": "server", "slug": example.slug, "source": fields["source"].value()}
    assert alice.post(reverse("benchmark-new"), data).status_code == 302


def test_the_form_offers_all_examples_and_no_unknown_one(world: World, alice: Client) -> None:
    page = alice.get(reverse("benchmark-new"))
    offered = values(page, "select[name=example] option")
    assert offered == [example.slug for example in load_examples()]
    assert elements(page, "select[name=example] option[selected]") == []
    unknown = alice.get(reverse("benchmark-new"), {"example": "../definitions"})
    assert unknown.status_code == 404
    assert "there is no example ../definitions" in get_text(unknown).lower()


def test_the_catalogue_is_listed(world: World, bob: Client) -> None:
    page = bob.get(reverse("catalogue")).content.decode()
    assert "Known latency" in page
    assert "Use as a template" not in page
    assert reverse("catalogue-run", args=["hello"]) not in page
    assert bob.get(reverse("catalogue-suite", args=["nothing"])).status_code == 404


def test_viewers_are_refused_and_strangers_find_nothing(
    world: World, repository: Path, bob: Client, mallory: Client
) -> None:
    address = reverse("project-import", args=["server"])
    assert bob.get(address).status_code == 200
    assert bob.post(address, {"path": ".pitwall.yaml"}).status_code == 403
    assert bob.post(reverse("benchmark-repository-definition", args=HELLO)).status_code == 403
    assert mallory.get(address).status_code == 404
    assert mallory.get(reverse("benchmark-diff", args=HELLO)).status_code == 404
    assert mallory.post(reverse("benchmark-repository-definition", args=HELLO)).status_code == 404
    assert Benchmark.objects.count() == 1


def test_a_page_view_requests_no_fetch_of_an_unknown_name(world: World) -> None:
    """Links that somebody sends, or that a browser opens by itself, fetch nothing."""
    address = reverse("project-import", args=["server"])
    bare = Client()  # It repeats no request by itself.
    bare.force_login(world.alice.user)
    requested = Fetch.objects.get().requested_at
    page = bare.get(address, {"ref": "nowhere"})
    assert page.status_code == 200
    assert "There is no commit, branch or tag nowhere" in page.content.decode()
    fetch = Fetch.objects.get()
    assert (fetch.requested_at, fetch.next_at) == (requested, None)

    # Sending the form requests a fetch.
    Fetch.objects.update(started_at=F("started_at") - UNKNOWN_AGAIN)
    waiting = bare.post(address, {"look": "nowhere"})
    assert waiting.status_code == 202
    assert Fetch.objects.get().state == "queued"
    assert bare.get(address, {"ref": "nowhere"}).status_code == 202, "a reader waits as well"
    run_fetches()
    response = bare.post(address, {"look": "nowhere"})
    assert response.headers["Location"] == f"{address}?ref=nowhere"
