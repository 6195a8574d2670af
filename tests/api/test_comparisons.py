"""What changed between two commits, over HTTP."""

import csv
from io import StringIO

import pytest
from django.test import Client

from orchestrator.comparisons.compare import compare_commits
from orchestrator.runs.models import Run, Trial
from tests.support import factories


def test_comparison_shows_a_regression(world, alice):
    run = world.measure_run(1000, 800)
    shown = alice.get("comparisons", baseline=world.shas[0], contender=world.shas[1]).json()
    assert (shown["benchmark"], shown["project"]) == ("hello", "server")
    assert shown["baseline"]["commit"] == world.shas[0]
    assert shown["contender"]["commit"] == world.shas[1]
    assert shown["verdict"] == "regressed"
    assert world.shas[1][:10] in shown["summary"]
    assert shown["notes"]
    (case,) = shown["cases"]
    assert case["host"] == "here"
    assert case["case"]["parameters"] == {"connections": 4}
    assert case["case"]["key"] == run.jobs.get().trials.first().case.key
    assert (case["verdict"], case["excluded_blocks"], case["open_loop"]) == ("regressed", 0, False)
    assert len(case["latency"]["percentiles"]) == len(case["latency"]["baseline"])


def test_comparison_equals_the_report(world, alice):
    world.measure_run(1000, 800)
    run = Run.objects.get()
    before, after = [variant.commit for variant in run.variants.all()]
    report = compare_commits(
        world.personas.alice, benchmark=run.definition.benchmark, baseline=before, contender=after
    )
    (case,) = alice.get("comparisons", run=run.pk).json()["cases"]
    shown = {metric["metric"]: metric for metric in case["metrics"]}
    for metric in report.cases[0].metrics:
        assert shown[metric.key]["change"] == metric.change
        assert shown[metric.key]["verdict"] == metric.verdict
        assert shown[metric.key]["interval"] == (list(metric.interval) if metric.interval else None)
    rate = shown["requests.rate"]
    assert rate["change"] == pytest.approx(-0.2, abs=0.01)
    assert rate["blocks"] == 5
    # A claimed change: its interval is wider than that of another metric.
    assert rate["confidence"] == pytest.approx(1 - 0.015)
    assert rate["interval"][0] <= rate["likely_change"] <= rate["interval"][1] < 0


def test_a_metric_missing_in_some_blocks_leaves_the_numbers_of_the_case_whole(world, alice):
    world.measure_run(1000, 800)
    sides = {"baseline": world.shas[0], "contender": world.shas[1]}
    whole = alice.get("comparisons", **sides).json()["cases"][0]
    trials = Trial.objects.select_related("variant")
    few = {0: {1, 3, 5}, 1: {1, 5}}
    chosen = [each for each in trials if each.round in few[each.variant.position]]
    factories.record_again({each.pk: {"latency.p99.9": 0.02} for each in chosen})
    Trial.objects.filter(round__in=[2, 4]).update(validity="suspect", reasons=["steal: 3 %"])
    (case,) = alice.get("comparisons", **sides).json()["cases"]
    blocks = {metric["metric"]: metric["blocks"] for metric in case["metrics"]}
    assert (blocks["requests.rate"], blocks["latency.p99.9"]) == (5, 2)
    assert (case["suspect_blocks"], case["excluded_blocks"]) == (2, 0)
    assert (case["latency"], case["quantiles"]) == (whole["latency"], whole["quantiles"])


@pytest.mark.parametrize("of_run", [False, True])
def test_comparison_page_shows_the_same(world, alice, settings, of_run):
    run = world.measure_run(1000, 800)
    query = {"run": run.pk} if of_run else {"baseline": world.shas[0], "contender": world.shas[1]}
    shown = alice.get("comparisons", **query).json()
    address = shown["web_url"].removeprefix(settings.BASE_URL)
    browser = Client()
    browser.force_login(world.personas.alice.user)
    page = browser.get(address)
    assert page.status_code == 200
    assert page.context["report"].summary == shown["summary"]
    assert (str(run.pk) in address) is of_run


def test_comparison_shows_that_nothing_changed(world, alice):
    world.measure_run(1000, 1000)
    shown = alice.get("comparisons", baseline=world.shas[0], contender=world.shas[1]).json()
    assert shown["verdict"] == "equivalent"


def test_a_run_supplies_omitted_parameters(world, alice):
    run = world.measure_run(1000, 800)
    assert alice.get("comparisons", run=run.pk).json()["verdict"] == "regressed"


def test_a_run_of_several_contenders_needs_a_contender(world, alice):
    run = world.measure_run(1000, 1000, 800)
    answer = alice.get("comparisons", run=run.pk)
    assert (answer.status_code, answer.json()["field"]) == (422, "contender")
    verdicts = [
        alice.get("comparisons", run=run.pk, contender=sha[:8]).json()["verdict"]
        for sha in world.shas[1:]
    ]
    assert verdicts == ["equivalent", "regressed"]


def test_a_commit_that_was_not_measured_is_refused(world, alice):
    world.measure_run(1000, 800)
    answer = alice.get("comparisons", baseline=world.shas[0], contender=world.shas[2])
    assert answer.status_code == 404
    assert "start a run" in answer.json()["detail"]


def test_commits_that_were_never_measured_together_are_unpaired(world, alice):
    world.measure_run(1000, 800)
    factories.finish_run(world.queue_run(1, 2), [800, 700])
    shown = alice.get("comparisons", baseline=world.shas[0], contender=world.shas[2]).json()
    assert (shown["paired"], shown["verdict"]) == (False, "inconclusive")
    codes = {each["code"] for each in shown["cases"][0]["reasons"]}
    assert codes == {"differs_not_confirmed", "unpaired"}
    assert "differs, not confirmed" in shown["summary"]
    assert "machine drift may be part of the difference" in shown["notes"][0]
    assert shown["cases"][0]["quantiles"] is None
    assert shown["cases"][0]["latency"]["contender"]


def test_the_order_effect_is_shown_in_all_formats(world, alice):
    world.measure_run(1000, 800)
    query = {"baseline": world.shas[0], "contender": world.shas[1]}
    metric = alice.get("comparisons", **query).json()["cases"][0]["metrics"][0]
    low, high = metric["order_effect"]["interval"]
    assert low < metric["order_effect"]["change"] < high
    assert metric["order_note"] == ""
    lines = StringIO(alice.get("comparisons/csv", **query).content.decode())
    row = next(csv.DictReader(lines))
    assert float(row["order_effect"]) == pytest.approx(metric["order_effect"]["change"])
    assert (float(row["order_low"]), float(row["order_high"])) == pytest.approx((low, high))


def test_a_missing_side_is_named(world, alice):
    answer = alice.get("comparisons", baseline=world.shas[0])
    assert (answer.status_code, answer.json()["field"]) == (422, "contender")


def test_the_benchmark_is_required_if_there_are_several(world, alice):
    run = world.measure_run(1000, 800)
    project = run.definition.benchmark.project
    factories.make_definition(world.personas.alice, project, slug="other")
    query = {"baseline": world.shas[0], "contender": world.shas[1]}
    answer = alice.get("comparisons", **query)
    assert (answer.status_code, answer.json()["field"]) == (422, "benchmark")
    assert alice.get("comparisons", benchmark="hello", **query).json()["verdict"] == "regressed"
    assert alice.get("comparisons", benchmark="other", **query).status_code == 404


def test_a_viewer_compares_and_a_stranger_does_not(world, bob, mallory):
    run = world.measure_run(1000, 800)
    query = {"benchmark": "hello", "baseline": world.shas[0], "contender": world.shas[1]}
    assert bob.get("comparisons", **query).status_code == 200
    assert mallory.get("comparisons", **query).status_code == 404
    assert mallory.get("comparisons", run=run.pk).status_code == 404


def test_comparison_of_one_case_on_one_host_has_quantiles(world, alice):
    run = world.measure_run(1000, 800)
    key = run.jobs.get().trials.first().case.key
    query = {"baseline": world.shas[0], "contender": world.shas[1], "case": key, "host": "here"}
    shown = alice.get("comparisons", **query).json()
    assert (shown["paired"], shown["mismatches"]) == (True, [])
    assert shown["sides"][1] == {
        "commit": world.shas[1], "case": key, "host": "here", "profile": None, "tool": None,
        "version": None,
    }  # fmt: skip
    assert (shown["tests"], shown["changed"], shown["survived"]) == (3, 3, 3)
    (case,) = shown["cases"]
    middle = next(each for each in case["quantiles"] if each["percentile"] == 50)
    assert middle["band"][0] < middle["interval"][0] < middle["change"] < middle["interval"][1]
    assert all(each["q_value"] < 0.05 for each in case["metrics"] if each["primary"])


def test_comparison_lists_mismatches(world, alice):
    run = world.measure_run(1000, 800)
    project = run.definition.benchmark.project
    source = factories.DEFINITION.replace("duration_s: 0.6", "duration_s: 0.7")
    factories.make_definition(world.personas.alice, project, source=source)
    factories.finish_run(world.queue_run(0, 1), [900, 800])
    query = {"baseline": world.shas[0], "version": 1, "contender_version": 2}
    shown = alice.get("comparisons", **query).json()
    assert [each["aspect"] for each in shown["mismatches"]] == ["definition"]
    assert shown["paired"] is False
    assert "version=1" in shown["web_url"]
    assert "contender_version=2" in shown["web_url"]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ({"contender_host": "nowhere"}, 404),
        ({"contender_version": "0"}, 422),
        ({"contender_case": "x"}, 404),
        ({"contender_tool": "wrk"}, 404),
        ({}, 422),
    ],
)
def test_an_empty_selection_is_refused(world, alice, words, status):
    world.measure_run(1000, 800)
    assert alice.get("comparisons", baseline=world.shas[0], **words).status_code == status


def test_comparison_is_exported_as_markdown_and_csv(world, alice, mallory):
    run = world.measure_run(1000, 800)
    shown = alice.get("comparisons", run=run.pk).json()
    response = alice.get("comparisons/markdown", run=run.pk)
    assert response.headers["Content-Type"] == "text/markdown; charset=utf-8"
    text = response.content.decode()
    assert shown["summary"] in text
    assert f"({shown['web_url']})" in text
    assert "| ▼ regressed | `connections 4` | **−20" in text
    rows = list(csv.DictReader(StringIO(alice.get("comparisons/csv", run=run.pk).content.decode())))
    metrics = shown["cases"][0]["metrics"]
    assert [row["metric"] for row in rows] == [each["metric"] for each in metrics]
    assert [float(row["change"]) for row in rows] == [each["change"] for each in metrics]
    for file in ("markdown", "csv"):
        assert mallory.get(f"comparisons/{file}", run=run.pk).status_code == 404
        assert alice.get(f"comparisons/{file}", baseline=world.shas[0]).status_code == 422
