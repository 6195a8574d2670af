"""A run until decided: its form, its page, and the status of its cases."""

from typing import Any

from django.test import Client
from django.urls import reverse

from orchestrator.runs.case_status import load_case_statuses
from orchestrator.runs.models import InterimAnalysis, Run, Schedule
from tests.support.factories import make_run
from tests.support.html_pages import elements, field_error, get_text, values
from tests.support.world import World

HTMX = {"HTTP_HX_REQUEST": "true"}


def _data(world: World, **changes: Any) -> dict[str, Any]:
    given = {
        "benchmark": "server/hello",
        "baseline": world.shas[0],
        "contender": world.shas[1],
        "hosts": ["here"],
        "until": "decided",
    }
    return {**given, **changes}


def test_the_preview_shows_a_range(world: World, alice: Client) -> None:
    page = get_text(alice.post(reverse("run-preview"), _data(world, budget="30"), **HTMX))
    assert "5 to 20" in page
    assert "interim analyses after 5, 7, 10, 15, 20" in page
    assert "usually" in page
    assert "30 min 00 s" in page


def test_a_run_until_decided_is_started_with_a_budget(world: World, alice: Client) -> None:
    answer = alice.post(reverse("run-new"), _data(world, budget="30", rounds="15", wait_limit="12"))
    assert answer.status_code == 302
    run = Run.objects.latest("created_at")
    assert (run.until, run.budget_s, run.rounds) == ("decided", 1800.0, 15)
    again = alice.get(f"{reverse('run-new')}?again={run.pk}")
    assert values(again, "input[name=until][checked]") == ["decided"]
    assert values(again, "input[name=budget]") == ["30.0"]
    assert values(again, "input[name=wait_limit]") == ["12.0"]


def test_an_older_form_still_requests_rounds(world: World, alice: Client) -> None:
    data = _data(world, rounds="6")
    del data["until"]
    alice.post(reverse("run-new"), data)
    run = Run.objects.latest("created_at")
    assert (run.until, run.budget_s, run.rounds) == ("rounds", None, 6)


def test_an_invalid_combination_is_shown_at_its_field(world: World, alice: Client) -> None:
    answer = alice.post(reverse("run-new"), _data(world, contender=""))
    assert "nothing to decide" in field_error(answer, "until")
    answer = alice.post(reverse("run-new"), _data(world, budget="0.05"))
    assert "is too small for one round" in field_error(answer, "budget")


def _create_analysis(run: Run, **found: Any) -> None:
    job = run.jobs.get()
    trial = job.trials.all()[0]
    values = {
        "excluded": 0,
        "decided": False,
        "futile": False,
        "verdict": "inconclusive",
        "p_values": [0.4],
        "message": "not decided: p50 +1.0 %",
        **found,
    }
    InterimAnalysis.objects.create(job=job, case=trial.case, **values)


def test_the_run_page_shows_the_blocks_still_needed(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2], until="decided")
    page = get_text(alice.get(reverse("run", args=[run.pk])))
    assert "until decided, at most 20 rounds" in page
    assert "first analysis after 5 clean blocks; 0 done" in page
    assert "0 of 1 done" in page
    run.jobs.get().trials.filter(round__lte=5).update(state="measured", validity="valid")
    _create_analysis(run, blocks=5, needed_blocks=11, needed_least=8, needed_most=20)
    address = reverse("run-progress", args=[run.pk])
    page = get_text(alice.get(address))
    assert "after 5 blocks: not decided: p50 +1.0 %; needs about 3 to 15 more blocks (" in page
    assert "10 of at most 40 trials" in page


def test_blocks_that_will_be_excluded_are_counted_as_needed(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2], until="decided")
    run.jobs.get().trials.filter(round__lte=10).update(state="measured", validity="valid")
    _create_analysis(run, blocks=5, excluded=5, needed_blocks=11, needed_least=8, needed_most=80)
    page = get_text(alice.get(reverse("run-progress", args=[run.pk])))
    assert "needs about 6 to over 100 more blocks (at least " in page
    InterimAnalysis.objects.update(needed_blocks=56)
    (status,) = load_case_statuses(run)
    assert status.further is not None
    assert status.further.in_reach is None
    assert status.text.endswith(
        "it may stay open, even with 100 more blocks: use a quieter host or a longer load"
    )


def test_the_run_page_shows_decisions_and_skipped_rounds(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2], until="decided")
    trials = run.jobs.get().trials
    trials.filter(round__lte=7).update(state="measured", validity="valid")
    trials.filter(round__gt=7).update(
        state="not needed", message="decided after 7 blocks: no change"
    )
    before = alice.get(reverse("run-progress", args=[run.pk])).headers["ETag"]
    _create_analysis(run, blocks=7, decided=True, verdict="equivalent", message="no change")
    answer = alice.get(reverse("run-progress", args=[run.pk]))
    page = get_text(answer)
    assert answer.headers["ETag"] != before
    assert "decided after 7 blocks: no change" in page
    assert "1 of 1 done" in page
    assert "14 of at most 40 trials, 26 not needed" in page
    assert elements(answer, "[data-state=decided]")
    listed = alice.get(reverse("run-trials", args=[run.pk])).content.decode()
    assert elements(listed, "[data-state='not needed']")
    assert "skipped after failures" not in listed


def test_a_schedule_can_run_until_decided(world: World, alice: Client) -> None:
    data = _data(world, name="nightly", when="cron", cron="0 3 * * *", budget="45", wait_limit="48")
    assert alice.post(reverse("run-new"), data).status_code == 302
    schedule = Schedule.objects.get()
    assert (schedule.until, schedule.budget_s) == ("decided", 2700.0)
    assert schedule.wait_limit_s == 172_800.0
    page = alice.get(reverse("schedules")).content.decode()
    assert "until decided" in page
    assert "budget 45 min" in page
    assert "waits for at most 48 h 00 min" in page
