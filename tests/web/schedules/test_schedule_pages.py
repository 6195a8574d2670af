"""Schedules in the browser."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.runs.models import Schedule
from tests.support.html_pages import element, field_error, get_text
from tests.support.world import World


def _data(**changes: Any) -> dict[str, Any]:
    given = {
        "name": "nightly", "cron": "0 3 * * *", "benchmark": "server/hello", "baseline": "main~1",
        "contender": "main", "hosts": ["here"], "rounds": "", "when": "cron",
    }  # fmt: skip
    return {**given, **changes}


def test_a_schedule_is_created_enabled_disabled_and_deleted(world: World, alice: Client) -> None:
    alice.post(reverse("run-new"), _data(pairwise="on"))
    schedule = Schedule.objects.get()
    assert (schedule.cron, schedule.contender_ref, schedule.enabled) == ("0 3 * * *", "main", True)
    assert schedule.pairwise
    assert "nightly" in alice.get(reverse("overview")).content.decode()

    alice.post(reverse("schedule-enable", args=[schedule.pk]), {"enabled": "false"})
    schedule.refresh_from_db()
    assert not schedule.enabled
    page = alice.get(reverse("schedules")).content.decode()
    assert "Turn on" in page
    assert "At 03:00 every day" in page

    alice.post(reverse("schedule-delete", args=[schedule.pk]))
    assert not Schedule.objects.exists()


def test_the_last_run_is_a_link(world: World, alice: Client) -> None:
    alice.post(reverse("run-new"), _data())
    message = f"9e1f013550: started run {world.run.pk} <b>"
    Schedule.objects.update(last_message=message)
    page = alice.get(reverse("schedules"))
    link = element(page, f"td a[href='{reverse('run', args=[world.run.pk])}']")
    assert get_text(link) == f"run {str(world.run.pk)[:8]}"
    assert str(world.run.pk) not in get_text(page)
    assert "&lt;b&gt;" in page.content.decode()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("cron", "every day", "Expected five cron fields"),
        ("hosts", [], "Choose at least one host"),
        ("baseline", "gone", "There is no commit, branch or tag gone"),
    ],
)
def test_an_error_is_shown_at_its_field(
    field: str, value: Any, words: str, world: World, alice: Client
) -> None:
    answer = alice.post(reverse("run-new"), _data(**{field: value}))

    assert answer.status_code == 422
    assert words in field_error(answer, field)
    assert not Schedule.objects.exists()


def test_a_taken_name_is_reported(world: World, alice: Client) -> None:
    alice.post(reverse("run-new"), _data())
    page = alice.post(reverse("run-new"), _data()).content.decode()

    assert "already has a schedule named nightly" in page


def test_viewers_and_strangers_are_refused(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    alice.post(reverse("run-new"), _data())
    schedule = Schedule.objects.get()

    assert bob.post(reverse("run-new"), _data(name="other")).status_code == 403
    for client, status in ((bob, 403), (mallory, 404)):
        for name in ("schedule-enable", "schedule-delete", "schedule-edit"):
            assert client.post(reverse(name, args=[schedule.pk])).status_code == status
    schedule.refresh_from_db()
    assert schedule.enabled


def test_the_run_form_creates_schedules(world: World, alice: Client) -> None:
    for changes, kept in (
        ({"when": "nightly", "at": "02:30"}, {"cron": "30 2 * * *", "name": "nightly"}),
        (
            {"when": "commits", "branch": "main", "baseline": "", "name": ""},
            {"branch": "main", "cron": "", "contender_ref": "", "name": "hello on main"},
        ),
        (
            {"name": "any", "hosts": ["profile:any"], "second_contender": "main~2"},
            {"placements": [{"target": "profile:any"}], "second_contender_ref": "main~2"},
        ),
    ):
        answer = alice.post(reverse("run-new"), _data(**changes))
        assert answer.headers["Location"] == reverse("schedules")
        schedule = Schedule.objects.latest("pk")
        assert {name: getattr(schedule, name) for name in kept} == kept
        page = alice.get(reverse("schedules")).content.decode()
        assert f"“{schedule.name}” was created" in page
    assert "each new commit on main" in get_text(page)
    assert "profile:any" in page


def test_missing_fields_of_a_schedule_are_reported(world: World, alice: Client) -> None:
    for changes, field, words in (
        ({"when": "commits", "branch": "gone"}, "branch", "There is no"),
        ({"when": "commits", "branch": ""}, "branch", "Enter a branch"),
        ({"when": "nightly", "at": ""}, "at", "Enter a time"),
        ({"until": "resolution", "resolution": "3"}, "resolution", "is not beyond the margin"),
        ({"until": "resolution", "resolution": "3.01"}, "resolution", "Not even 100 rounds detect"),
    ):
        answer = alice.post(reverse("run-new"), _data(**changes))
        assert words in field_error(answer, field)
    assert not Schedule.objects.exists()


def test_a_schedule_is_edited_in_the_form_that_made_it(world: World, alice: Client) -> None:
    alice.post(reverse("run-new"), _data(hosts=["here", "profile:any"], until="decided"))
    schedule = Schedule.objects.get()
    edit = reverse("schedule-edit", args=[schedule.pk])
    form = alice.get(edit).context["form"]
    assert "now" not in dict(form.fields["when"].choices)
    shown = {name: form[name].value() for name in form.fields}
    data = {name: value for name, value in shown.items() if value not in (None, False)}
    assert alice.post(edit, data).headers["Location"] == reverse("schedules")
    same = Schedule.objects.get()
    for name in ("name", "cron", "baseline_ref", "contender_ref", "placements", "until"):
        assert getattr(same, name) == getattr(schedule, name)

    changed = {**data, "when": "commits", "branch": "main", "contender": "", "name": "each"}
    assert alice.post(edit, changed).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.name, schedule.branch, schedule.cron) == ("each", "main", "")
    assert schedule.seen_sha == world.shas[-1]
    assert alice.post(edit, {**data, "cron": "never", "when": "cron"}).status_code == 422


def test_a_schedule_of_tags_is_created_shown_and_edited(world: World, alice: Client) -> None:
    given = _data(when="tags", tags="v2.*", contender="", cron="", baseline="", name="")
    alice.post(reverse("run-new"), given)
    schedule = Schedule.objects.get()
    assert (schedule.tags, schedule.branch, schedule.cron) == ("v2.*", "", "")
    assert schedule.name == "hello on tags v2.*"
    assert "each new tag v2.*" in get_text(alice.get(reverse("schedules")))
    edit = reverse("schedule-edit", args=[schedule.pk])
    assert 'value="v2.*"' in alice.get(edit).content.decode()
    refused = alice.post(edit, {**given, "tags": ""})
    assert "Enter a pattern of tags" in field_error(refused, "tags")
