"""Asking for a run: preview, errors at their fields, start, run again."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.runs.models import Run
from tests.web.conftest import World

HTMX = {"HTTP_HX_REQUEST": "true"}


def _data(world: World, **changes: Any) -> dict[str, Any]:
    given = {
        "benchmark": "server/hello",
        "baseline": world.shas[0],
        "contender": "main",
        "second_contender": "",
        "hosts": ["here"],
        "rounds": "7",
    }
    return {**given, **changes}


def _error_of(page: str, field: str) -> str:
    start = page.index(f'id="id_{field}_error"')
    return page[page.index(">", start) + 1 : page.index("</p>", start)]


def test_it_previews_cases_trials_and_time_before_anything_starts(
    world: World, alice: Client
) -> None:
    before = Run.objects.count()
    panel = alice.post(reverse("run-preview"), _data(world), **HTMX).content.decode()

    assert "<html" not in panel
    assert "<dt>Trials</dt><dd>14</dd>" in panel.replace("\n", "")
    assert "<dt>Cases</dt><dd>1</dd>" in panel
    assert "Estimated time" in panel
    assert Run.objects.count() == before


def test_it_previews_as_a_whole_page_without_scripts(world: World, alice: Client) -> None:
    answer = alice.post(reverse("run-preview"), _data(world))
    page = answer.content.decode()

    assert answer.status_code == 200
    assert "<html" in page
    assert "Estimated time" in page
    assert 'value="main"' in page


def test_it_warns_of_too_few_rounds(world: World, alice: Client) -> None:
    panel = alice.post(reverse("run-preview"), _data(world, rounds="2"), **HTMX).content.decode()

    assert "with 2 rounds no verdict can be given" in panel


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("baseline", "no-such-branch", "there is no commit, branch or tag no-such-branch"),
        ("contender", "no-such-branch", "there is no commit, branch or tag no-such-branch"),
        ("rounds", "0", "greater than or equal to 1"),
        ("hosts", ["elsewhere"], "elsewhere is not one of the available choices"),
    ],
)
def test_it_shows_an_error_at_its_field(
    field: str, value: Any, words: str, world: World, alice: Client
) -> None:
    data = _data(world, **{field: value})
    preview = alice.post(reverse("run-preview"), data, **HTMX).content.decode()
    started = alice.post(reverse("run-new"), data)

    assert words in _error_of(preview, field)
    assert started.status_code == 422
    assert words in _error_of(started.content.decode(), field)


def test_it_says_nothing_of_fields_that_are_not_filled_in_yet(world: World, alice: Client) -> None:
    data = _data(world, baseline="", contender="", hosts=[])
    panel = alice.post(reverse("run-preview"), data, **HTMX).content.decode()

    assert _error_of(panel, "baseline") == ""
    assert _error_of(panel, "hosts") == ""
    assert "Fill in the commits" in panel


def test_it_names_both_commits_that_are_the_same(world: World, alice: Client) -> None:
    data = _data(world, contender=world.shas[0])
    page = alice.post(reverse("run-new"), data).content.decode()

    assert "which is in this run already" in _error_of(page, "contender")


def test_it_starts_the_run_and_leads_to_it(world: World, alice: Client) -> None:
    answer = alice.post(reverse("run-new"), _data(world, second_contender=world.shas[1]))
    run = Run.objects.order_by("-created_at").first()

    assert run is not None
    assert answer.headers["Location"] == reverse("run", args=[run.pk])
    assert [variant.commit.sha for variant in run.variants.all()] == [
        world.shas[0], world.shas[2], world.shas[1],
    ]  # fmt: skip
    assert run.rounds == 7
    assert run.trigger == "web"


def test_it_refuses_a_viewer(world: World, bob: Client) -> None:
    before = Run.objects.count()
    answer = bob.post(reverse("run-new"), _data(world))

    assert answer.status_code == 403
    assert "ask an admin of the team" in answer.content.decode()
    assert Run.objects.count() == before


def test_it_does_not_take_another_teams_benchmark(world: World, mallory: Client) -> None:
    answer = mallory.post(reverse("run-new"), _data(world))

    assert answer.status_code == 422
    assert Run.objects.exclude(pk=world.run.pk).count() == 0


def test_it_offers_branches_and_commits(world: World, alice: Client) -> None:
    page = alice.get(reverse("run-new")).content.decode()

    assert '<option value="main">branch</option>' in page
    assert f'<option value="{world.shas[1][:10]}">version 2</option>' in page


def test_it_offers_the_commits_of_the_benchmark_that_was_chosen(
    world: World, alice: Client
) -> None:
    panel = alice.post(reverse("run-preview"), _data(world), **HTMX).content.decode()

    assert '<datalist id="refs" hx-swap-oob="true">' in panel
    assert '<option value="main">' in panel


def test_it_fills_the_form_in_to_run_again(world: World, alice: Client) -> None:
    page = alice.get(reverse("run-new"), {"again": str(world.run.pk)}).content.decode()

    assert f'value="{world.shas[0][:10]}"' in page
    assert 'value="here" checked' in page
    assert alice.get(reverse("run-new"), {"again": "nonsense"}).status_code == 404
