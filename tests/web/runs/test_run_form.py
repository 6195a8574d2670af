"""Asking for a run: preview, errors at their fields, start, run again."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.fleet.open_hours import DAYS
from orchestrator.fleet.services import add_local_host, save_profile
from orchestrator.runs.models import Job, Run, Trial
from tests.support.factories import (
    DEFINITION,
    git,
    make_definition,
    make_local_host,
    make_repository,
    make_run,
)
from tests.support.fetches import fetch_now, run_fetches
from tests.support.html_pages import element, elements, field_error, get_text, values
from tests.support.world import World

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


def _checked(page: Any, name: str) -> list[str]:
    """Values of the boxes with this name that are checked."""
    return values(page, f"input[name={name}][checked]")


def test_cases_trials_and_duration_are_previewed(world: World, alice: Client) -> None:
    before = Run.objects.count()
    panel = alice.post(reverse("run-preview"), _data(world), **HTMX).content.decode()

    assert "<html" not in panel
    assert "Trials 14 Jobs 1" in get_text(panel)
    assert "Cases 1" in get_text(panel)
    assert "Estimated time" in panel
    assert Run.objects.count() == before


def test_the_preview_is_a_whole_page_without_scripts(world: World, alice: Client) -> None:
    answer = alice.post(reverse("run-preview"), _data(world))
    page = answer.content.decode()

    assert answer.status_code == 200
    assert "<html" in page
    assert "Estimated time" in page
    assert "main" in values(page, "[value]")


def test_too_few_rounds_give_a_warning(world: World, alice: Client) -> None:
    panel = alice.post(reverse("run-preview"), _data(world, rounds="2"), **HTMX).content.decode()

    assert "With 2 rounds no verdict is possible" in panel


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("baseline", "no-such-branch", "There is no commit, branch or tag no-such-branch"),
        ("contender", "no-such-branch", "There is no commit, branch or tag no-such-branch"),
        ("rounds", "0", "greater than or equal to 1"),
        ("hosts", ["elsewhere"], "There is no host elsewhere"),
    ],
)
def test_an_error_is_shown_at_its_field(
    field: str, value: Any, words: str, world: World, alice: Client
) -> None:
    data = _data(world, **{field: value})
    preview = alice.post(reverse("run-preview"), data, **HTMX).content.decode()
    assert ("Fetching repository" in preview) == (value == "no-such-branch")
    if run_fetches():
        preview = alice.post(reverse("run-preview"), data, **HTMX).content.decode()
    started = alice.post(reverse("run-new"), data)

    assert words in field_error(preview, field)
    assert started.status_code == 422
    assert words in field_error(started, field)


def test_empty_fields_have_no_errors_in_the_preview(world: World, alice: Client) -> None:
    data = _data(world, baseline="", contender="", hosts=[])
    panel = alice.post(reverse("run-preview"), data, **HTMX).content.decode()

    assert field_error(panel, "baseline") == ""
    assert field_error(panel, "hosts") == ""
    assert "Choose a commit and a host" in panel


def test_the_form_begins_with_the_default_branch_the_only_host_and_the_rounds(
    world: World, alice: Client
) -> None:
    page = alice.get(reverse("run-new"))
    fields = page.context["form"]

    assert (fields["contender"].value(), fields["baseline"].value()) == ("main", None)
    assert _checked(page, "hosts") == ["here"]
    assert "Empty: 5, as in the definition" in get_text(element(page, "#id_rounds_helptext"))
    options = element(page, "details.more-options")
    assert not options.has_attr("open")
    assert {"second_contender", "until", "budget", "priority", "when", "cases"} <= {
        str(each["name"]) for each in options.select("[name]")
    }
    started = alice.post(
        reverse("run-new"), {"benchmark": "server/hello", "contender": "main", "hosts": ["here"]}
    )
    run = Run.objects.latest("created_at")
    assert started.headers["Location"] == reverse("run", args=[run.pk])
    assert [each.commit.sha for each in run.variants.all()] == world.shas[1:]


@pytest.mark.parametrize(
    "query",
    [{"when": "nightly"}, {"priority": "high"}, {"until": "decided"}, {"cases": "connections > 1"}],
)
def test_options_that_the_address_names_are_open(
    query: dict[str, str], world: World, alice: Client
) -> None:
    page = alice.get(reverse("run-new"), query)

    assert element(page, "details.more-options").has_attr("open")


def test_an_error_below_more_options_opens_them(world: World, alice: Client) -> None:
    page = alice.post(reverse("run-new"), _data(world, budget="none"))

    assert element(page, "details.more-options").has_attr("open")
    assert not element(
        alice.post(reverse("run-new"), _data(world, contender="nope")), "details.more-options"
    ).has_attr("open")


def test_commits_of_the_address_replace_the_default_branch(world: World, alice: Client) -> None:
    for query in ({"contender": world.shas[1]}, {"baseline": world.shas[0]}):
        fields = alice.get(reverse("run-new"), query).context["form"]
        assert fields["contender"].value() == query.get("contender")
        assert fields["baseline"].value() == query.get("baseline")


def test_the_first_commit_of_a_repository_is_measured_alone(
    world: World, alice: Client, tmp_path: Path
) -> None:
    make_repository(tmp_path / "single", [{"server.py": "pass"}])
    project = create_project(
        member=world.alice, slug="single", name="", repository_url=str(tmp_path / "single")
    )
    fetch_now(project)
    make_definition(world.alice, project, slug="single")
    key = "single/single"
    page = alice.get(reverse("run-new"), {"benchmark": key})

    assert page.context["form"]["baseline"].value() == "main"
    assert page.context["form"]["contender"].value() is None
    panel = alice.post(
        reverse("run-preview"), {"benchmark": key, "baseline": "main", "hosts": ["here"]}, **HTMX
    )
    assert "One commit is measured, without a comparison." in get_text(panel)


def test_no_host_is_chosen_among_two(world: World, alice: Client) -> None:
    make_local_host(world.alice, "there")
    assert _checked(alice.get(reverse("run-new")), "hosts") == []
    Host.objects.filter(name="there").update(state="maintenance")
    assert _checked(alice.get(reverse("run-new")), "hosts") == ["here"]


def test_the_form_follows_the_default_branch_of_another_project(
    world: World, alice: Client
) -> None:
    other = world.add_project()
    make_definition(world.alice, other, slug="elsewhere")
    Project.objects.filter(pk=other.pk).update(default_branch="trunk")
    sent = {"benchmark": "other/elsewhere", "hosts": ["here"], "grid": "of another benchmark"}
    typed = {**sent, "default_branch": "main", "contender": world.shas[1]}
    filled_in = {**sent, "default_branch": "main", "contender": "main"}

    for data, contender in ((typed, world.shas[1]), (filled_in, "trunk")):
        panel = alice.post(reverse("run-preview"), data, **HTMX)
        swapped = "[hx-swap-oob=true] input[name=contender], input[hx-swap-oob=true]"
        assert values(panel, swapped) == ["trunk", contender]


def _add_external_host(world: World, name: str) -> None:
    world.alice.team.hosts.create(
        name=name, profile=world.host.profile, transport="external", state="external", work_dir=""
    )


def test_a_host_that_is_measured_elsewhere_is_named_with_the_reason(
    world: World, alice: Client
) -> None:
    _add_external_host(world, "ci-7")
    page = alice.get(reverse("run-new"), {"hosts": ["ci-7"]})

    assert "ci-7 is measured elsewhere: Pitwall only receives its results" in get_text(page)
    assert _checked(page, "hosts") == ["here"]
    sent = alice.post(reverse("run-new"), _data(world, hosts=["ci-7"]))
    assert sent.status_code == 422
    assert "ci-7 is measured elsewhere" in field_error(sent, "hosts")
    Host.objects.filter(name="here").update(state="retired")
    page = alice.get(reverse("run-new"), {"hosts": ["here"]})
    assert "here is retired: activate it on its page first" in get_text(page)


def test_hosts_of_other_teams_are_not_explained(world: World, alice: Client) -> None:
    profile = save_profile(member=world.personas.mallory, slug="m", name="M")
    world.personas.mallory.team.hosts.create(
        name="theirs", profile=profile, transport="external", state="external", work_dir=""
    )
    assert "theirs" not in get_text(alice.get(reverse("run-new"), {"hosts": ["theirs"]}))


def test_equal_commits_are_named(world: World, alice: Client) -> None:
    data = _data(world, contender=world.shas[0])
    page = alice.post(reverse("run-new"), data).content.decode()

    assert "which is already in this run" in field_error(page, "contender")


def test_a_started_run_is_opened(world: World, alice: Client) -> None:
    answer = alice.post(reverse("run-new"), _data(world, second_contender=world.shas[1]))
    run = Run.objects.order_by("-created_at").first()

    assert run is not None
    assert answer.headers["Location"] == reverse("run", args=[run.pk])
    assert [variant.commit.sha for variant in run.variants.all()] == [
        world.shas[0], world.shas[2], world.shas[1],
    ]  # fmt: skip
    assert run.rounds == 7
    assert run.trigger == "web"


def test_a_viewer_cannot_start_a_run(world: World, bob: Client) -> None:
    before = Run.objects.count()
    answer = bob.post(reverse("run-new"), _data(world))

    assert answer.status_code == 403
    assert "ask a maintainer or owner of the team" in answer.content.decode()
    assert Run.objects.count() == before


def test_the_benchmark_of_another_team_is_refused(world: World, mallory: Client) -> None:
    answer = mallory.post(reverse("run-new"), _data(world))

    assert answer.status_code == 422
    assert Run.objects.exclude(pk=world.run.pk).count() == 0


def test_branches_and_commits_are_offered(world: World, alice: Client) -> None:
    page = alice.get(reverse("run-new")).content.decode()

    options = {str(each["value"]): get_text(each) for each in elements(page, "#refs option[value]")}
    assert (options["main"], options[world.shas[1][:10]]) == ("branch", "version 2")


def test_commits_of_the_selected_benchmark_are_offered(world: World, alice: Client) -> None:
    panel = alice.post(reverse("run-preview"), _data(world), **HTMX).content.decode()

    assert "main" in values(panel, "datalist#refs[hx-swap-oob=true] option")


def test_the_form_is_prefilled_for_a_rerun(world: World, alice: Client) -> None:
    page = alice.get(reverse("run-new"), {"again": str(world.run.pk)}).content.decode()

    assert world.shas[0][:10] in values(page, "[value]")
    assert _checked(page, "hosts") == ["here"]
    assert alice.get(reverse("run-new"), {"again": "nonsense"}).status_code == 404


@pytest.fixture
def fleet(world: World) -> list[Host]:
    """Next to `here`: two T490s with separate addresses; one generates the load."""
    profile = save_profile(member=world.alice, slug="t490s", name="T490s")
    hosts = []
    for name, tags in (("left", ["load"]), ("right", [])):
        host = add_local_host(member=world.alice, name=name, profile=profile, python="python3")
        Host.objects.filter(pk=host.pk).update(tags=tags, data_address="10.9.0.1")
        hosts.append(host)
    return hosts


def _places(page: Any) -> dict[str, str]:
    """What can be selected to measure on: the text next to each box."""
    labels = elements(page, "label:has(input[name=hosts])")
    return {values(label, "input")[0]: get_text(label) for label in labels}


def _list_placements(run: Run) -> list[dict[str, str]]:
    return [
        {place.role: place.host_selector for place in job.placements.all()}
        for job in run.jobs.all()
    ]


def test_the_number_of_free_hosts_is_shown(world: World, alice: Client, fleet: list[Host]) -> None:
    Host.objects.filter(name="right").update(state="maintenance")
    Host.objects.filter(name="here").update(open_hours=_tomorrow())
    make_run(world.alice, world.shas[:2], hosts=("left",))
    make_run(world.alice, world.shas[:2], hosts=("profile:t490s",))
    places = _places(alice.get(reverse("run-new")))

    assert list(places) == ["here", "left", "right", "profile:any", "profile:t490s", "tag:load"]
    assert "closed" in places["here"]
    assert places["left"].endswith("free 1 queued, 18 s")
    assert places["right"].endswith("In maintenance")
    assert places["profile:t490s"] == "any T490s 2 hosts 1 free 1 held 2 queued, 18 s"
    assert places["tag:load"] == "any tagged load 1 host 1 free 1 queued, 18 s"


def _tomorrow() -> str:
    """Hours of a whole day that is not today, whatever the clock says."""
    return DAYS[(utc_now().weekday() + 3) % 7]


def test_a_retired_host_is_not_offered(world: World, alice: Client, fleet: list[Host]) -> None:
    Host.objects.filter(name="left").update(state="retired")
    disabled = values(alice.get(reverse("run-new")), "input[name=hosts][disabled]")

    assert {"left", "tag:load"} <= {*disabled}
    assert "profile:t490s" not in disabled


def test_any_host_of_a_profile_can_be_requested(
    world: World, alice: Client, fleet: list[Host]
) -> None:
    alice.post(reverse("run-new"), _data(world, hosts=["profile:t490s", "here"], priority="high"))
    run = Run.objects.latest("created_at")

    assert run.get_priority_display() == "High"
    assert sorted(each["target"] for each in _list_placements(run)) == [
        "host:here",
        "profile:t490s",
    ]


def test_a_selection_becomes_a_placement_of_several_hosts(
    world: World, alice: Client, fleet: list[Host]
) -> None:
    data = _data(world, hosts=["right"], generator="tag:load")
    alice.post(reverse("run-new"), data)

    assert _list_placements(Run.objects.latest("created_at")) == [
        {"target": "host:right", "generator": "tag:load"}
    ]


def test_written_placements_are_accepted(world: World, alice: Client, fleet: list[Host]) -> None:
    written = "target=left generator=right\n\n target=profile:t490s\n"
    alice.post(reverse("run-new"), _data(world, hosts=[], placements=written))

    assert _list_placements(Run.objects.latest("created_at")) == [
        {"target": "host:left", "generator": "host:right"},
        {"target": "profile:t490s"},
    ]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"placements": "left right"}, "placements", "expected role=host"),
        ({"placements": "target=left victim=right"}, "placements", "expected role=host"),
        ({"placements": "target=nowhere generator=left"}, "placements", "no host named nowhere"),
        ({"hosts": ["here"], "generator": "left"}, "hosts", "has no address"),
        ({"hosts": ["left"], "backend": "right"}, "backend", "has no role 'backend'"),
        ({"hosts": []}, "hosts", "Choose at least one host"),
        ({"priority": "urgent"}, "priority", "urgent is not one of"),
        ({"baseline": "", "contender": "main~2"}, "baseline", "has no parent; name a baseline"),
    ],
)
def test_errors_of_placements_are_shown_at_their_field(
    changes: dict[str, Any],
    field: str,
    words: str,
    world: World,
    alice: Client,
    fleet: list[Host],
) -> None:
    answer = alice.post(reverse("run-new"), _data(world, **changes))

    assert answer.status_code == 422
    assert words in field_error(answer, field)


def test_the_parent_is_the_default_baseline(world: World, alice: Client) -> None:
    panel = alice.post(reverse("run-preview"), _data(world, baseline=""), **HTMX)

    assert f"{world.shas[1][:10]} baseline" in get_text(panel)


def test_the_preview_shows_jobs_machine_time_and_warnings(
    world: World, alice: Client, fleet: list[Host]
) -> None:
    Host.objects.filter(name="right").update(open_hours=_tomorrow())
    data = _data(world, hosts=["right"], generator="left")
    text = get_text(alice.post(reverse("run-preview"), data, **HTMX))

    # One trial: 0.2 s warm-up, 0.6 s load, 1 s around it; 14 of them, on two hosts.
    assert "Jobs 1 of 25 s" in text
    assert "25 s 50 s of machine time" in text
    assert "right is closed until" in text
    assert "subject does not use {bind}" in text


@pytest.mark.parametrize(
    ("requested", "fields"),
    [
        ({"hosts": ("profile:t490s", "tag:load")}, {"profile:t490s", "tag:load"}),
        ({"placements": ({"target": "left", "generator": "right"},)}, {"left"}),
    ],
)
def test_a_rerun_has_the_same_placements(
    requested: dict[str, Any], fields: set[str], world: World, alice: Client, fleet: list[Host]
) -> None:
    run = make_run(world.alice, world.shas[:2], priority="low", **{"hosts": (), **requested})
    page = alice.get(reverse("run-new"), {"again": str(run.pk)})
    selected = values(page, "option[selected]")

    assert {*_checked(page, "hosts")} == fields
    assert "low" in selected
    assert ("right" in selected) == ("placements" in requested)


def test_a_rerun_keeps_placements_that_differ(
    world: World, alice: Client, fleet: list[Host]
) -> None:
    placements = ({"target": "left", "generator": "right"}, {"target": "tag:load"})
    run = make_run(world.alice, world.shas[:2], hosts=(), placements=placements)
    page = alice.get(reverse("run-new"), {"again": str(run.pk)})
    written = element(page, "textarea[name=placements]").get_text()

    assert written.strip() == "target=left generator=right\ntarget=tag:load"
    assert _checked(page, "hosts") == []


def test_one_commit_alone_is_measured(world: World, alice: Client) -> None:
    data = _data(world, contender="", cases="connections == 4")
    panel = alice.post(reverse("run-preview"), data, **HTMX).content.decode()
    assert "One commit is measured, without a comparison." in panel
    assert "baseline</span>" not in panel

    answer = alice.post(reverse("run-new"), data)
    page = alice.get(answer.headers["Location"]).content.decode()
    assert "cases where connections == 4" in get_text(page)
    assert "measured alone, no comparison" in page
    again = alice.get(reverse("run-new"), {"again": answer.headers["Location"].split("/")[-2]})
    assert again.context["form"]["cases"].value() == "connections == 4"
    assert again.context["form"]["contender"].value() == ""
    assert "alone</span>" in alice.get(reverse("runs")).content.decode()


def test_an_invalid_expression_is_shown_at_its_field(world: World, alice: Client) -> None:
    data = _data(world, cases="speed == 1")
    preview = alice.post(reverse("run-preview"), data, **HTMX).content.decode()

    assert "There is no axis or label speed" in field_error(preview, "cases")
    assert alice.post(reverse("run-new"), data).status_code == 422


MATRIX = DEFINITION.replace(
    "connections: [4]", "connections: [4, 8]\n  system: [quick, old, slow]\n  size: [s, l]"
)


@pytest.fixture
def grid(world: World, alice: Client) -> str:
    """The hidden name of the grid of six cells and two sizes that the form shows."""
    make_definition(world.alice, world.run.definition.benchmark.project, source=MATRIX)
    return str(alice.get(reverse("run-new")).context["choice"].id)


def _grid_data(world: World, grid: str, *boxes: str, **changes: Any) -> dict[str, Any]:
    return _data(world, grid=grid, boxes=boxes, **changes)


def test_cases_with_checked_boxes_are_measured(world: World, alice: Client, grid: str) -> None:
    chosen = ("0.0", "1.0", "2.1", "size.1")
    panel = alice.post(
        reverse("run-preview"), _grid_data(world, grid, *chosen), **HTMX
    ).content.decode()
    assert "3 cases × 14 trials" in get_text(panel)
    alice.post(reverse("run-new"), _grid_data(world, grid, *chosen, cases="connections < 8"))
    run = Run.objects.latest("created_at")
    cases = {trial.case.label for trial in Trial.objects.filter(job__run=run)}
    assert cases == {"connections 4, system quick, size l", "connections 4, system old, size l"}

    again = alice.get(reverse("run-new"), {"again": str(run.pk)})
    assert _checked(again, "boxes") == ["0.0", "1.0", "size.1"]
    assert again.context["form"]["cases"].value() == ""


def test_all_boxes_are_all_cases_and_no_box_is_an_error(
    world: World, alice: Client, grid: str
) -> None:
    every = _checked(alice.get(reverse("run-new")), "boxes")
    assert len(every) == 8
    alice.post(reverse("run-new"), _grid_data(world, grid, *every))
    assert Run.objects.latest("created_at").cases == ""
    for boxes in ((), ("0.0",), ("size.0",)):
        answer = alice.post(reverse("run-new"), _grid_data(world, grid, *boxes))
        assert "Choose at least one case" in field_error(answer, "cases")


def test_headings_select_rows_and_columns_without_scripts(
    world: World, alice: Client, grid: str
) -> None:
    every = ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1", "size.0", "size.1"]
    for toggle, boxes, expected in (
        ("row.1", ["0.0", "size.0"], ["0.0", "1.0", "1.1", "size.0"]),
        ("column.0", ["0.0", "1.0", "2.0", "2.1"], ["2.1"]),
        ("axis.size", ["size.1"], ["size.0", "size.1"]),
        ("all", [], every),
        ("all", every, []),
    ):
        data = _grid_data(world, grid, *boxes, toggle=toggle)
        assert _checked(alice.post(reverse("run-preview"), data), "boxes") == expected


def test_a_large_grid_is_submitted_completely(world: World, alice: Client) -> None:
    axes = f"connections: {[*range(1, 41)]}\n  size: {[*range(40)]}"
    source = DEFINITION.replace("connections: [4]", axes)
    make_definition(world.alice, world.run.definition.benchmark.project, source=source)
    grid = alice.get(reverse("run-new")).context["choice"]
    boxes = [f"{row}.{column}" for row, column in sorted(grid.grid.cells)[1:]]
    data = _data(world, grid=grid.id, boxes=boxes, rounds="5")
    panel = alice.post(reverse("run-preview"), data, **HTMX).content.decode()

    assert "1599 cases × 10 trials" in get_text(panel)


def test_a_grid_of_other_cases_starts_nothing(world: World, alice: Client, grid: str) -> None:
    data = _grid_data(world, "0" * 16, "0.0", "size.0")
    answer = alice.post(reverse("run-new"), data)
    assert "cases of this benchmark have changed" in field_error(answer, "cases")
    panel = alice.post(reverse("run-preview"), data, **HTMX)
    assert values(panel, "input[name=grid]") == [grid]
    assert "12 cases" in get_text(panel)


def test_rounds_follow_from_the_target_resolution(world: World, alice: Client) -> None:
    data = _data(world, until="resolution", resolution="3.1", rounds="3")
    panel = alice.post(reverse("run-preview"), data, **HTMX).content.decode()
    match = re.search(r"(\d+) rounds detect changes of 3.1 % in requests per second on here", panel)
    assert match is not None
    assert "by earlier runs there" in panel
    alice.post(reverse("run-new"), data)
    run = Run.objects.latest("created_at")
    assert 5 < run.rounds == int(match[1])

    Host.objects.filter(pk=world.host.pk).update(name="there")
    make_local_host(world.alice)
    page = alice.post(reverse("run-new"), data).content.decode()
    assert "The noise of here with this benchmark is unknown" in field_error(page, "resolution")


def test_the_expected_end_of_a_run_is_shown(world: World, alice: Client) -> None:
    waiting = make_run(world.alice, world.shas[:2], rounds=100)
    Job.objects.filter(run=waiting).update(expected_s=7200)
    low = make_run(world.alice, world.shas[:2], priority="low")
    Job.objects.filter(run=low).update(expected_s=7200)
    answer = alice.post(reverse("run-preview"), _data(world), **HTMX)
    wait_s = (answer.context["finish"] - utc_now()).total_seconds()

    assert 7200 < wait_s < 7300
    assert "done about " in get_text(answer)
    assert "2 queued, 4 h 00 min" in _places(alice.get(reverse("run-new")))["here"]


def test_commits_are_found_by_typed_text(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    git(Path(world.run.definition.benchmark.project.repository_url), "tag", "v1.0", "main~1")
    fetch_now(world.run.definition.benchmark.project)

    def list_options(client: Client, text: str) -> list[str]:
        given = {"for": "contender", "benchmark": "server/hello", "contender": text}
        return values(client.get(reverse("run-refs"), given), "option")

    assert list_options(alice, "Version 2") == [world.shas[1][:10]]
    assert list_options(bob, world.shas[2][:5]) == [world.shas[2][:10]]
    assert list_options(alice, "v1") == ["v1.0"]
    assert list_options(alice, "mai") == ["main"]
    assert list_options(mallory, "main") == []


def test_the_same_run_is_started_again_immediately(
    world: World, alice: Client, bob: Client, mallory: Client, fleet: list[Host]
) -> None:
    placements = ({"target": "left", "generator": "right"}, {"target": "tag:load"})
    run = make_run(
        world.alice, world.shas, hosts=(), placements=placements, priority="low", until="decided"
    )
    address = reverse("run-rerun", args=[run.pk])
    assert (bob.post(address).status_code, mallory.post(address).status_code) == (403, 404)
    alice.post(address)
    again = Run.objects.latest("created_at")
    assert again.pk != run.pk
    assert _list_placements(again) == _list_placements(run)
    same = ("rounds", "until", "priority", "cases", "definition_id")
    assert [getattr(again, name) for name in same] == [getattr(run, name) for name in same]
    commits = [[each.commit.sha for each in one.variants.all()] for one in (run, again)]
    assert commits[0] == commits[1]


def test_a_run_of_a_branch_continues_after_the_fetch(world: World, personas: Any) -> None:
    """The page shows the state of the fetch, and has all that was sent."""
    browser = Client()
    browser.force_login(personas.alice.user)
    data = _data(world, contender="main")
    known = Run.objects.count()
    page = browser.post(reverse("run-new"), data)
    assert page.status_code == 202
    text = page.content.decode()
    assert "Queued" in text
    assert "data-send-when-fetched" in text
    assert values(page, "input[type=hidden][name=contender]") == ["main"]
    assert Run.objects.count() == known
    # It waits for a fetch since the request, however long: one that ran before does not do.
    polled = page.context["wait"]
    state = f"{reverse('project-fetch', args=['server'])}?wait={polled}"
    assert f"?wait={quote(polled)}" in text
    Fetch.objects.update(next_at=None)
    assert "data-awaited" in browser.get(state).content.decode()
    since = cache.get(polled)
    before = _read_expiry(polled)
    cache.touch(polled, 30)
    assert _read_expiry(polled) < before
    browser.get(state)
    assert _read_expiry(polled) >= before, "whoever looks keeps the time of the request"
    Fetch.objects.update(next_at=since)
    run_fetches()
    ended = browser.get(state).content.decode()
    assert elements(ended, "[data-state=done]")
    assert "data-awaited" not in ended
    assert browser.post(reverse("run-new"), data).status_code == 302
    assert Run.objects.count() == known + 1


def _read_expiry(key: str) -> datetime:
    """When the cache forgets this key."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT expires FROM {cache._table} WHERE cache_key = %s",  # type: ignore[attr-defined]
            [cache.make_key(key)],
        )
        expiry: datetime = cursor.fetchone()[0]
    return expiry


def test_a_run_with_several_builds_is_previewed_started_and_repeated(
    world: World, alice: Client
) -> None:
    source = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")
    make_definition(world.alice, world.project, source=source)
    data = _data(world, rounds="10", builds="5")
    panel = alice.post(reverse("run-preview"), data, **HTMX).content.decode()
    assert "Builds 5 of each commit, on each host" in get_text(panel)
    few = alice.post(reverse("run-preview"), {**data, "rounds": "5"}, **HTMX).content.decode()
    assert "5 rounds can measure at most 3 builds" in field_error(few, "builds")
    alice.post(reverse("run-new"), data)
    run = Run.objects.latest("created_at")
    assert run.builds == 5
    page = alice.get(reverse("run", args=[run.pk])).content.decode()
    assert "with 5 builds of each commit" in get_text(page)
    again = alice.get(reverse("run-new"), {"again": run.pk}).content.decode()
    assert element(again, "#id_builds")["value"] == "5"
