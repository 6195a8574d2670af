"""The primary metrics in the cells and in the tables of trials of a run."""

from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestrator.core.clock import utc_now
from orchestrator.measurements.run_numbers import load_primary_values
from orchestrator.results.models import Reading
from orchestrator.runs.models import Job, Run, Trial
from tests.support.factories import (
    MIXED_LOOPS,
    make_definition,
    make_run,
    record_again,
    record_trial,
)
from tests.support.html_pages import element, elements, get_text
from tests.support.world import World

SOURCE = """\
version: 1
title: Wide
subject: {start: ["true", "{port}"]}
load: {path: "/{page}", connections: "{connections}", duration_s: 0.6, warmup_s: 0.2}
matrix: {connections: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], page: [a, b, c]}
rounds: 5
"""


def _show(client: Client, run: Run, name: str = "run", **query: object) -> Any:
    return client.get(reverse(name, args=[run.pk]), query).content.decode()


def _read_cells(page: Any) -> list[str]:
    return [get_text(each) for each in elements(page, ".case-states tbody td:not(.end)")]


def _invalidate(run: Run, *, variant: int, rounds: int) -> None:
    """Make the trials of one variant in the first rounds invalid."""
    trials = Trial.objects.filter(job__run=run, variant__position=variant, round__lte=rounds)
    trials.update(validity="invalid", reasons=["cpu_of_others: 120 % (limit: at most 50 %)"])
    record_again()


def test_cells_show_the_medians_of_their_usable_trials(world: World, alice: Client) -> None:
    page = _show(alice, world.run)
    legend = (
        "Medians of the usable trials : Requests per second · Latency p50 (closed loop) · "
        "Server CPU per 1,000 requests."
    )

    assert legend in get_text(page)
    assert _read_cells(page) == [
        "● done 6 of 6 usable 1 000 1/s · 4.00 ms · 900 ms / 1k",
        "● done 6 of 6 usable 1 000 1/s · 4.00 ms · 900 ms / 1k",
        "● done 6 of 6 usable 851 1/s · 4.70 ms · 1.06 s / 1k ▼ regressed +17.6 %",
    ]


def test_invalid_trials_are_not_in_the_median(world: World, alice: Client) -> None:
    trial = Trial.objects.filter(job__run=world.run, variant__position=0, round=1).get()
    record_again({trial.pk: {"requests.rate": 9_000_000.0}})
    _invalidate(world.run, variant=0, rounds=1)

    assert _read_cells(_show(alice, world.run))[0].startswith("● done 5 of 6 usable 1 000 1/s")


def test_a_case_without_usable_blocks_is_no_success(world: World, alice: Client) -> None:
    _invalidate(world.run, variant=0, rounds=6)
    page = _show(alice, world.run)
    cells = _read_cells(page)

    assert cells[0] == "! unusable 0 of 6 usable"
    assert cells[1].startswith("! unusable 6 of 6 usable 1 000 1/s"), "no block has a baseline"
    assert elements(page, ".case-states td[data-state=done]") == []


def test_a_running_case_shows_the_numbers_so_far(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    Job.objects.filter(run=run).update(state="measuring", phase="measuring")
    Run.objects.filter(pk=run.pk).update(state="running")
    trials = list(run.jobs.get().trials.order_by("position")[:2])
    for trial, validity in zip(trials, ("valid", "invalid"), strict=True):
        Trial.objects.filter(pk=trial.pk).update(state="measured", validity=validity)
        record_trial(trial, {"requests.rate": 1234.0}, validity=validity)
    address = reverse("run-progress", args=[run.pk])
    cells = _read_cells(alice.get(address, HTTP_HX_REQUEST="true").content.decode())

    assert sorted(cells) == [
        "◔ under way 1/5 1 234 1/s · – · –",
        "◔ under way 1/5, 0 usable",
    ]


def test_a_run_of_one_commit_needs_no_pairs(world: World, alice: Client) -> None:
    run = world.measure_run(1000)
    assert _read_cells(_show(alice, run))[0].startswith("● done 5 of 5 usable")


def test_trials_show_the_primary_metrics(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    trial = Trial.objects.get(job__run=world.run, variant__position=2, round=3)
    record_again({trial.pk: {"requests.rate": 777.0, "latency.p50": 0.0123}})
    for page in (_show(alice, world.run), _show(bob, world.run, "run-trials")):
        head = get_text(element(page, "table.dense:not(.case-states) thead"))
        assert "Requests per second Latency p50 (closed loop) Server CPU per 1,000 requests" in head
    row = next(
        get_text(each)
        for each in elements(_show(alice, world.run, "run-trials"), "tbody tr")
        if str(trial.pk) in str(each)
    )
    assert "777 1/s 12.3 ms" in row
    assert mallory.get(reverse("run-trials", args=[world.run.pk])).status_code == 404


def test_a_case_has_only_the_metrics_of_its_own_loop(world: World, alice: Client) -> None:
    make_definition(world.alice, world.project, slug="mixed", source=MIXED_LOOPS)
    run = world.measure_run(1000, 850, benchmark="mixed")
    page = _show(alice, run)
    heads = (
        "Requests per second · Latency p50 (closed loop or open loop) · "
        "Server CPU per 1,000 requests · Latency p99 (open loop)."
    )
    assert heads in get_text(page)
    closed, *_ = elements(page, ".case-states tbody tr")
    assert "1 000 1/s · 4.00 ms · 900 ms / 1k · –" in get_text(closed)
    assert "– · 4.00 ms · 900 ms / 1k · 12.0 ms" in get_text(
        elements(page, ".case-states tbody tr")[1]
    )
    trials = {each.pk: each.case for each in Trial.objects.filter(job__run=run)}
    _, values = load_primary_values(run, {pk: case.pk for pk, case in trials.items()})
    assert {trials[pk].parameters["loop"]: set(each) for pk, each in values.items()} == {
        "closed": {"requests.rate", "latency.p50", "cpu.seconds_per_1k"},
        "open": {"latency.p99", "latency.p50", "cpu.seconds_per_1k"},
    }


def test_removed_readings_are_shown_as_unknown(world: World, alice: Client) -> None:
    Reading.objects.all().delete()
    page = _show(alice, world.run)

    assert _read_cells(page)[0] == "● done 6 of 6 usable"
    assert "– – – here" in get_text(elements(page, "table.dense:not(.case-states) tbody tr")[0])


def test_queries_do_not_grow_with_the_cases(world: World, alice: Client) -> None:
    make_definition(world.alice, world.project, slug="wide", source=SOURCE)
    runs = [world.measure_run(1000, 850), world.measure_run(1000, 850, benchmark="wide")]
    pages, counts = [], []
    for run in runs:
        with CaptureQueriesContext(connection) as queries:
            pages.append(_show(alice, run))
        counts.append(len(queries))
    assert [len(_read_cells(page)) for page in pages] == [2, 60]
    assert counts[1] <= counts[0]


def test_a_failed_run_has_no_verdict(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    first = Trial.objects.filter(job__run=run, round=1)
    first.update(state="failed", message="the server ended with 1", host=world.host)
    Trial.objects.filter(job__run=run, state="planned").update(state="skipped", message="failed")
    Job.objects.filter(run=run).update(state="failed", message="the server ended with 1")
    Run.objects.filter(pk=run.pk).update(state="failed", ended_at=utc_now())
    page = _show(alice, run)

    assert elements(page, "[data-verdict]") == []
    assert "inconclusive" not in page
    assert get_text(element(page, "#progress-title")) == "✕ failed"
    assert get_text(element(page, "#cases-title")) == "Cases 0 of 1 done"
    row = next(
        row for row in elements(alice.get(reverse("runs")), "tbody tr") if str(run.pk) in str(row)
    )
    assert "failed" in get_text(row)
    assert "inconclusive" not in get_text(row)
