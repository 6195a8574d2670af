"""Suspect and invalid trials are marked, with their reasons, wherever a number of theirs is."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.calibration.calibrations import judge_calibration
from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.results.models import Series
from orchestrator.runs.calibration import NewCalibration, start_calibration
from orchestrator.runs.golden import NewGolden, set_golden
from orchestrator.runs.models import Trial
from tests.support.factories import finish_run
from tests.support.html_pages import get_text, values
from tests.support.trials import ERRORS, STEAL, doubt
from tests.support.world import World


@pytest.fixture
def doubtful(world: World) -> World:
    """Of the first variant's six trials one is invalid, of the last one's two are suspect."""
    trials = Trial.objects.filter(job__run=world.run).order_by("round")
    doubt(trials.filter(variant__position=0)[0], "invalid", ERRORS)
    for each in list(trials.filter(variant__position=2)[1:3]):
        doubt(each, "suspect", STEAL)
    return world


def page_text(client: Client, address: str, **query: Any) -> str:
    return get_text(client.get(address, query))


def test_a_run_counts_trials_with_validity_issues(doubtful: World, alice: Client) -> None:
    text = page_text(alice, reverse("run", args=[doubtful.run.pk]))
    assert "✕ invalid 1 trial excluded from all results. ! suspect 2 trials included" in text
    assert "CPU that the hypervisor took (2), Answers of another status (1)" in text
    assert "1 block excluded; ! 2 blocks with a suspect trial" in text


def test_lists_of_runs_count_trials_with_validity_issues(doubtful: World, alice: Client) -> None:
    for address in (reverse("overview"), reverse("runs")):
        assert "✕ 1 invalid, ! 2 suspect" in page_text(alice, address)


def test_a_run_without_validity_issues_has_no_notice(world: World, alice: Client) -> None:
    text = page_text(alice, reverse("run", args=[world.run.pk]))
    assert "What this means" not in text
    assert "suspect" not in page_text(alice, reverse("overview"))


def test_lists_of_trials_exclude_invalid_ones_unless_requested(
    doubtful: World, alice: Client
) -> None:
    address = reverse("run-trials", args=[doubtful.run.pk])
    without, with_them = page_text(alice, address), page_text(alice, address, invalid="1")

    assert "Trials 17" in without
    assert "1 invalid trial excluded. Include it" in without
    assert "✕ invalid Answers of another status" not in without
    assert "! suspect CPU that the hypervisor took" in without
    assert "Trials 18" in with_them
    assert "✕ invalid Answers of another status" in with_them


def test_a_comparison_shows_excluded_blocks(doubtful: World, alice: Client) -> None:
    query = {"benchmark": "server/hello", "baseline": doubtful.shas[0]}
    text = page_text(alice, reverse("compare"), contender=doubtful.shas[2], **query)

    assert "✕ excluded 1 block. ! suspect 2 of the compared blocks" in text
    assert "CPU that the hypervisor took (2), Answers of another status (1)" in text


def test_a_history_marks_points_and_excludes_invalid_trials(doubtful: World, alice: Client) -> None:
    address = reverse("history")
    page = alice.get(address, {"benchmark": "server/hello"}).content.decode()
    text = page_text(alice, address, benchmark="server/hello")

    assert "✕ invalid 1 trial excluded from this series" in text
    assert "5 ✕ 1 excluded" in text
    assert "6 ! 2 suspect" in text
    assert "CPU that the hypervisor took (2)" in values(page, "[title]", "title")
    series = Series.objects.get(metric__key="requests.rate")
    data = alice.get(reverse("history-data", args=[series.pk])).json()["points"]
    assert (data["suspect"], data["invalid"]) == ([0, 0, 2], [1, 0, 0])


def test_an_entirely_invalid_case_is_reported(world: World, alice: Client) -> None:
    for each in Trial.objects.filter(job__run=world.run):
        doubt(each, "invalid", ERRORS)
    history = page_text(alice, reverse("history"), benchmark="server/hello")
    assert "All 18 trials with “Requests per second” are invalid, so none is shown" in history
    query = {"benchmark": "server/hello", "baseline": world.shas[0], "contender": world.shas[1]}
    compared = page_text(alice, reverse("compare"), **query)
    assert "All blocks are excluded, so no values can be compared" in compared
    assert (
        "The contender failed in 6 of 6 blocks. The baseline failed in 6 of 6 blocks." in compared
    )
    assert "✕ excluded 6 blocks" in compared


def test_a_latency_in_a_history_names_its_load_model(world: World, alice: Client) -> None:
    address = reverse("history")
    latency = page_text(alice, address, benchmark="server/hello", metric="latency.p99")
    rate = page_text(alice, address, benchmark="server/hello", metric="requests.rate")

    assert "Closed loop: slow answers delay the next request" in latency
    assert "Closed loop" not in rate


def test_a_calibration_reports_excluded_trials(world: World, alice: Client) -> None:
    new = NewCalibration(benchmark="hello", commit=world.shas[0], pairs=6)
    run = start_calibration(member=world.alice, host_id=world.host.pk, new=new)
    first, second, *_ = Trial.objects.filter(job__run=finish_run(run, [1000])).order_by("round")
    doubt(first, "invalid", ERRORS)
    doubt(second, "suspect", STEAL)
    judge_calibration(run)
    text = page_text(alice, reverse("host", args=[world.host.pk]))

    assert "✕ invalid 1 trial excluded from all results. ! suspect 1 trial included" in text
    assert "✕ 1 invalid, ! 1 suspect" in text
    assert "5 pairs" in text


def test_a_golden_run_reports_validity_issues(world: World, alice: Client) -> None:
    new = NewGolden(benchmark="hello", commit=world.shas[0], every_hours=1)
    check = set_golden(member=world.alice, host_id=world.host.pk, new=new)
    type(check).objects.filter(pk=check.pk).update(last_run=world.run)
    assert "Validity issues" not in page_text(alice, reverse("host", args=[world.host.pk]))
    doubt(Trial.objects.filter(job__run=world.run)[0], "suspect", STEAL)

    assert (
        "Validity issues ! suspect 1 trial included, but marked. Why: CPU that the hypervisor"
        in (page_text(alice, reverse("host", args=[world.host.pk])))
    )


def test_the_page_of_validity_reasons_lists_every_threshold(world: World, alice: Client) -> None:
    page = alice.get(reverse("validity"))
    assert set(values(page, "tr[id]", "id")) == set(THRESHOLDS)
    assert "docs/validity.md" in page.content.decode()
