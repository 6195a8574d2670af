"""Backfills in the browser: the estimate, the start, the runs and their cancellation."""

import json

import pytest
from django.urls import reverse

from orchestrator.results.models import Point
from orchestrator.runs.models import Backfill, Job, Run
from tests.support.html_pages import element, field_error, get_text


def build_form(**changes):
    given = {
        "benchmark": "server/hello", "source": "last", "count": "3", "hosts": ["here"],
        "again": "on",
    }  # fmt: skip
    return {**given, **changes}


def test_the_estimate_comes_first_and_the_start_queues_one_run_per_commit(world, alice):
    page = alice.post(reverse("backfill-new"), build_form())
    text = get_text(page)
    assert "Commits 3" in text
    assert "Trials 15" in text
    assert "Start backfill" in text
    assert not Run.objects.filter(trigger="backfill").exists()

    started = alice.post(reverse("backfill-new"), build_form(start="true"))
    backfill = Backfill.objects.get()
    assert started["Location"] == reverse("backfill", args=[backfill.pk])
    assert backfill.runs.count() == 3
    assert "last 3 commits of the default branch" in get_text(alice.get(reverse("backfills")))


def test_the_page_shows_why_a_commit_failed_and_why_others_were_left_out(world, alice):
    Point.objects.all().delete()
    alice.post(reverse("backfill-new"), build_form(count="1", start="true"))
    Job.objects.update(state="failed", message="The build failed: no such file")
    Run.objects.update(state="failed")
    alice.post(reverse("backfill-new"), build_form(again="", start="true"))
    newest, oldest = Backfill.objects.order_by("-created_at")
    assert "The build failed: no such file" in get_text(
        alice.get(reverse("backfill", args=[oldest.pk]))
    )
    shown = get_text(alice.get(reverse("backfill", args=[newest.pk])))
    assert "failed in an earlier backfill" in shown


def test_a_repeated_start_is_refused_and_keeps_what_was_typed(world, alice):
    alice.post(reverse("backfill-new"), build_form(start="true"))
    page = alice.post(reverse("backfill-new"), build_form(start="true"))
    assert page.status_code == 422
    assert "No commit is left to measure: already in another backfill" in get_text(page)
    assert 'name="count" value="3"' in page.content.decode()


@pytest.mark.parametrize(
    ("changes", "field", "part"),
    [
        ({"source": "range"}, "since", "Name the first commit"),
        ({"branch": "nope"}, "branch", "nope"),
        ({"hosts": []}, "hosts", "Choose at least one host"),
    ],
)
def test_a_mistake_is_shown_at_its_field(world, alice, changes, field, part):
    page = alice.post(reverse("backfill-new"), build_form(**changes))
    assert page.status_code == 422
    assert part in field_error(page, field)


def test_a_backfill_is_cancelled_with_one_button(world, alice):
    alice.post(reverse("backfill-new"), build_form(start="true"))
    backfill = Backfill.objects.get()
    address = reverse("backfill", args=[backfill.pk])
    assert "Cancel 3 runs" in get_text(alice.get(address))
    alice.post(reverse("backfill-cancel", args=[backfill.pk]))
    assert {run.state for run in backfill.runs.all()} == {"cancelled"}
    assert "Cancel 3 runs" not in get_text(alice.get(address))


def poll(client, page, selector):
    """Request the part of a page again, as htmx does."""
    part = element(page, selector)
    headers = {"HX-Request": "true", **json.loads(part["hx-headers"])}
    return client.get(part["hx-get"], headers=headers)


@pytest.mark.parametrize(
    ("name", "selector", "before", "after"),
    [
        ("backfill", "#backfill", "2 ○ queued", "1 ✕ failed 1 ○ queued"),
        ("backfills", "#backfills", "2 ○ queued", "1 ✕ failed 1 ○ queued"),
    ],
)
def test_a_page_reloads_its_part_until_all_runs_have_ended(
    world, alice, name, selector, before, after
):
    alice.post(reverse("backfill-new"), build_form(count="2", start="true"))
    runs = list(Backfill.objects.get().runs.all())
    address = reverse(name, args=[Backfill.objects.get().pk] if name == "backfill" else [])
    page = alice.get(address)
    assert before in get_text(element(page, selector))
    assert poll(alice, page, selector).status_code == 304

    Job.objects.filter(run=runs[0]).update(state="failed", message="the build failed")
    Run.objects.filter(pk=runs[0].pk).update(state="failed")
    part = poll(alice, page, selector)

    assert part.status_code == 200
    assert after in get_text(element(part, selector))
    assert "<html" not in part.content.decode()
    assert poll(alice, part, selector).status_code == 304
    Run.objects.update(state="finished")
    ended = element(poll(alice, part, selector), selector)
    assert "hx-get" not in ended.attrs
    assert "2 ● finished" in get_text(ended)
    whole = alice.get(address)
    assert "hx-get" not in element(whole, selector).attrs
    assert "htmx.min" not in whole.content.decode()


def test_viewers_see_a_backfill_and_start_none_and_strangers_see_nothing(
    world, alice, bob, mallory
):
    alice.post(reverse("backfill-new"), build_form(start="true"))
    backfill = Backfill.objects.get()
    address = reverse("backfill", args=[backfill.pk])
    assert bob.get(address).status_code == 200
    assert "Cancel" not in get_text(bob.get(address))
    assert bob.post(reverse("backfill-new"), build_form(start="true")).status_code == 403
    assert bob.post(reverse("backfill-cancel", args=[backfill.pk])).status_code == 403
    assert mallory.get(address).status_code == 404
    assert mallory.post(reverse("backfill-cancel", args=[backfill.pk])).status_code == 404
