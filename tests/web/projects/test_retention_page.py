"""The project's page, and the pages of what its retention has taken away."""

from datetime import timedelta

from django.test import Client
from django.urls import reverse

from orchestrator.core.clock import utc_now
from orchestrator.results.models import Pin, Retention, Series
from orchestrator.retention.pruning import prune
from orchestrator.runs.models import Run, Trial
from tests.support.html_pages import element, values
from tests.support.trials import leave_json, leave_load
from tests.support.world import World

PAGE = reverse("project", args=["server"])
FORM = {"files_days": "10", "distributions_days": "20", "trials_days": "30"}


def pruned(world: World, *, days: int = 450) -> Trial:
    trial = Trial.objects.filter(job__run=world.run).order_by("position")[0]
    leave_json(trial, "result.json", {"hosts": {"a": {"load1": 0.5}}})
    leave_load(trial, 0, latencies_us=[100])
    Run.objects.filter(pk=world.run.pk).update(ended_at=utc_now() - timedelta(days=days))
    prune(world.run.definition.benchmark.project, utc_now())
    return trial


def test_an_admin_changes_the_retention(world: World, alice: Client) -> None:
    assert "90" in values(alice.get(PAGE), "input[value]")

    answer = alice.post(PAGE, FORM, follow=True).content.decode()

    assert "The retention was changed" in answer
    held = Retention.objects.get()
    assert (held.files_days, held.trials_days, held.points_days) == (10, 30, None)
    assert "10" in values(answer, "input[value]")


def test_an_error_is_shown_at_its_field(world: World, alice: Client) -> None:
    answer = alice.post(PAGE, {**FORM, "trials_days": "5"})
    assert answer.status_code == 422
    assert "Single trials cannot go before distributions" in answer.content.decode()
    assert not Retention.objects.exists()


def test_viewers_read_the_retention_and_strangers_do_not(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    page = bob.get(PAGE).content.decode()
    assert "<dd>90</dd>" in page
    assert "<dd>without limit</dd>" in page
    assert "Change the retention" not in page
    assert bob.post(PAGE, FORM).status_code == 403
    pins = reverse("project-pin", args=["server"])
    assert bob.post(pins, {"ref": "main", "reason": "x"}).status_code == 403
    assert mallory.get(PAGE).status_code == 404
    assert mallory.post(PAGE, FORM).status_code == 404
    assert mallory.post(pins, {"ref": "main", "reason": "x"}).status_code == 404
    keep = reverse("run-pin", args=[world.run.pk])
    assert mallory.post(keep, {"reason": "x"}).status_code == 404
    assert bob.post(keep, {"reason": "x"}).status_code == 403
    assert not Pin.objects.exists()


def test_a_commit_and_a_run_are_pinned(world: World, alice: Client, bob: Client) -> None:
    alice.post(reverse("project-pin", args=["server"]), {"ref": world.shas[0], "reason": "1.0"})
    run = alice.post(reverse("run-pin", args=[world.run.pk]), {"reason": "the report"}, follow=True)
    assert "Pinned: the report" in run.content.decode()

    page = bob.get(PAGE).content.decode()

    assert world.shas[0][:10] in page
    assert "the report" in page
    pin = Pin.objects.get(reason="1.0")
    remove = reverse("project-pin-remove", args=["server", pin.pk])
    assert bob.post(remove).status_code == 403
    alice.post(remove)
    assert [each.reason for each in Pin.objects.all()] == ["the report"]


def test_a_pin_without_a_commit_is_refused(world: World, alice: Client) -> None:
    pins = reverse("project-pin", args=["server"])
    answer = alice.post(pins, {"ref": "nowhere", "reason": "x"})
    assert answer.status_code == 422
    assert "There is no commit, branch or tag nowhere" in answer.content.decode()


def test_the_project_page_reports_removed_data(world: World, bob: Client) -> None:
    pruned(world)

    page = bob.get(PAGE).content.decode()

    assert "Raw output" in page
    assert "Distributions of single trials" in page
    assert reverse("run", args=[world.run.pk]) in page


def test_a_trial_page_reports_removed_data_with_the_time(world: World, alice: Client) -> None:
    trial = pruned(world)
    today = f"{utc_now():%Y-%m-%d}"

    answer = alice.get(reverse("trial", args=[trial.pk]))

    page = answer.content.decode()
    assert answer.status_code == 200
    assert f"Raw output was removed after 90 days, on {today}" in page
    assert f"merged into one a commit and removed after 400 days, on {today}" in page
    assert "This trial has no files" not in page
    assert PAGE + "#retention" in page
    for url in (
        reverse("trial-artifact", args=[trial.pk, "tool.json"]),
        reverse("trial-histogram", args=[trial.pk, "ok"]),
    ):
        gone = alice.get(url)
        assert gone.status_code == 410
        assert "removed after" in gone.content.decode()
    assert alice.get(reverse("trial", args=[trial.pk]) + "?load=0").status_code == 200


def test_a_comparison_uses_the_merged_distributions(world: World, alice: Client) -> None:
    query = f"?benchmark=server/hello&baseline={world.shas[0]}&contender={world.shas[2]}"
    page = alice.get(reverse("compare") + query)
    address = reverse("compare") + values(page, "th a[href^='case?']", "href")[0]
    element(alice.get(address), "[data-chart=latency]")
    pruned(world)

    after = alice.get(address)

    assert after.status_code == 200
    element(after, "[data-chart=latency]")


def test_no_page_fails_after_trials_were_removed(world: World, alice: Client) -> None:
    alice.post(PAGE, FORM)
    trial = pruned(world)

    for url in (
        reverse("run", args=[world.run.pk]),
        reverse("run-trials", args=[world.run.pk]),
        reverse("runs"),
        reverse("overview"),
        reverse("history") + "?benchmark=server/hello",
        reverse("host", args=[world.host.pk]),
        PAGE,
    ):
        assert alice.get(url).status_code == 200, url
    notice = f"Single trials were removed after 30 days, on {utc_now():%Y-%m-%d}"
    for page in ("run", "run-trials"):
        assert notice in alice.get(reverse(page, args=[world.run.pk])).content.decode()
    assert alice.get(reverse("trial", args=[trial.pk])).status_code == 404
    series = Series.objects.get(metric__key="requests.rate")
    point = alice.get(reverse("history-point", args=[series.pk, world.shas[0]]))
    assert "removed the trials; their values remain" in point.content.decode()
    compare = f"?benchmark=server/hello&baseline={world.shas[0]}&contender={world.shas[2]}"
    compared = alice.get(reverse("compare") + compare)
    assert compared.status_code == 200
    assert "is a regression" in compared.content.decode()
