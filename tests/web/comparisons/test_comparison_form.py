"""The form of a comparison of more than commits, and the page that answers it."""

from typing import Any

from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Benchmark
from tests.support.factories import DEFINITION, finish_run, make_definition, make_run
from tests.support.html_pages import elements, get_text, values
from tests.support.world import World


def _query(world: World, **changes: Any) -> dict[str, Any]:
    return {"benchmark": "server/hello", "baseline": world.shas[0], **changes}


def test_only_measured_choices_are_offered(world: World, alice: Client) -> None:
    page = alice.get(reverse("compare-choose"), _query(world)).content.decode()

    options = {str(each["value"]): get_text(each) for each in elements(page, "option[value]")}
    assert (options["here"], options["oha"], options["1"]) == ("here", "oha", "version 1")
    assert world.shas[0] in values(page, "[value]")
    assert elements(page, "[name=contender_profile]")


def test_a_team_without_benchmarks_gets_instructions(world: World, mallory: Client) -> None:
    page = mallory.get(reverse("compare-choose")).content.decode()

    assert reverse("benchmark-new") in page
    assert "<fieldset" not in page


def test_htmx_gets_only_the_fields(world: World, alice: Client) -> None:
    answer = alice.get(
        reverse("compare-choose"), _query(world, host="here"), headers={"HX-Request": "true"}
    )
    part = answer.content.decode()

    assert "<html" not in part
    assert "here" in values(part, "option[selected]")


def test_mismatches_are_shown_at_the_top(world: World, alice: Client) -> None:
    project = Benchmark.objects.get().project
    source = DEFINITION.replace("duration_s: 0.6", "duration_s: 0.7")
    make_definition(world.alice, project, source=source)
    finish_run(make_run(world.alice, world.shas[:1]), [900])
    page = alice.get(
        reverse("compare"), _query(world, version="1", contender_version="2")
    ).content.decode()

    assert elements(page, ".mismatches ~ section table.compared")
    assert "duration_s: 0.7" in page
    assert "Definition: 1 → 2" in page
    assert "! unpaired" in get_text(page)


def test_a_contender_without_a_commit_inherits_the_baseline(world: World, alice: Client) -> None:
    assert alice.get(reverse("compare"), _query(world)).context.get("report") is None
    answer = alice.get(reverse("compare"), _query(world, contender_host="nowhere"))

    assert answer.status_code == 404
    assert "no host nowhere" in answer.content.decode()


def test_inconclusive_cases_offer_a_deciding_run(world: World, alice: Client) -> None:
    shas = world.shas[1:]
    finish_run(make_run(world.alice, shas, rounds=5), [1000, 1000], wobble=0.03)
    finish_run(make_run(world.alice, shas, rounds=5), [1000, 1000], wobble=0.03)
    query = _query(world, baseline=shas[0], contender=shas[1])
    page = alice.get(reverse("compare"), query)
    more = page.context["more"]

    assert page.context["report"].verdict == "inconclusive"
    assert f"Measure {more.blocks} more block" in page.content.decode()
    form = alice.get(f"{reverse('run-new')}?{more.query}").context["form"]
    assert form.initial["rounds"] == str(more.blocks)
    assert form.initial["contender"] == shas[1][:10]
    assert form.initial["hosts"] == ["here"]
