"""Comparisons of little, of odd numbers, and of what was measured elsewhere."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from orchestrator.benchmarks.models import Benchmark, Commit, Project
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.comparisons.compare import compare_commits, compare_sides
from orchestrator.comparisons.evidence import load_evidence, load_latency_detail
from orchestrator.comparisons.report import ComparisonReport
from orchestrator.comparisons.sides import Side
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.measurements.readings import load_values
from orchestrator.measurements.recording import MeasuredRow
from orchestrator.results.models import Point, Reading
from orchestrator.runs.models import Trial
from tests.support.factories import (
    DEFINITION,
    Personas,
    finish_run,
    make_definition,
    make_run,
    record,
    record_again,
    record_trial,
)


def compare(personas: Personas, commits: list[Commit]) -> ComparisonReport:
    return compare_commits(
        personas.alice,
        benchmark=Benchmark.objects.get(),
        baseline=commits[0],
        contender=commits[1],
    )


def elsewhere(
    commit: Commit, values: list[float], *, key: str = "requests.rate", **changes: Any
) -> None:
    """Results that a client sent of a host that we never measured on."""
    benchmark = Benchmark.objects.get()
    case, _ = benchmark.cases.get_or_create(
        key="e" * 16, defaults={"parameters": {"size": 1}, "label": "size 1"}
    )
    with transaction.atomic():
        record(
            [
                MeasuredRow(
                    id=uuid4(), benchmark=benchmark.pk, case=case.pk, host=Host.objects.get().pk,
                    commit=commit.pk, at=utc_now(), validity="valid", readings={key: value},
                    provenance={"tool": "wrk"}, **changes,
                )
                for value in values
            ]
        )  # fmt: skip


def test_one_round_is_inconclusive_with_the_rounds_still_needed(
    personas: Personas, commits: list[Commit]
) -> None:
    shas = [commit.sha for commit in commits[:2]]
    finish_run(make_run(personas.alice, shas, rounds=1), [1000, 500])
    report = compare(personas, commits)
    (case,) = report.cases
    assert report.verdict == "inconclusive"
    assert (case.metrics[0].interval, case.metrics[0].q_value) == (None, None)
    assert case.missing_blocks == 4
    assert case.missing_s is not None
    assert case.missing_s > 0
    assert load_latency_detail(report, case).quantiles is not None


def test_equal_numbers_are_equivalent(personas: Personas, commits: list[Commit]) -> None:
    shas = [commit.sha for commit in commits[:2]]
    finish_run(make_run(personas.alice, shas), [1000, 1000], wobble=0)
    report = compare(personas, commits)
    assert report.verdict == "equivalent"
    assert report.cases[0].metrics[0].change == 0
    assert load_latency_detail(report, report.cases[0]).quantiles is not None


def test_a_zero_has_no_ratio_and_a_negative_value_is_excluded(
    personas: Personas, commits: list[Commit]
) -> None:
    for commit, rate in zip(commits[:2], (0.0, 5.0), strict=True):
        elsewhere(commit, [rate] * 6)
        elsewhere(commit, [-1.0] * 6, key="latency.p50")
    (case,) = compare(personas, commits).cases
    assert [metric.key for metric in case.metrics] == ["requests.rate"]
    assert "zero has no ratio" in case.metrics[0].reasons[1]


def test_external_results_without_blocks_are_unpaired(
    personas: Personas, commits: list[Commit]
) -> None:
    elsewhere(commits[0], [100.0, 101.0, 99.0, 100.5, 99.5, 100.0])
    elsewhere(commits[1], [80.0, 81.0, 79.0, 80.5, 79.5])
    report = compare(personas, commits)
    (case,) = report.cases
    assert (report.verdict, report.paired, report.mismatches) == ("inconclusive", False, ())
    assert case.outcome == "differs, not confirmed"
    assert case.metrics[0].blocks == 5
    assert case.metrics[0].reasons[1].startswith("differs, not confirmed: 1 and 1 of at least 3")
    assert load_latency_detail(report, case).curves == (None, None)


def test_external_results_with_blocks_are_paired(personas: Personas, commits: list[Commit]) -> None:
    for number in range(7):
        for commit, rate in zip(commits[:2], (100.0, 80.0), strict=True):
            elsewhere(commit, [rate * (1 + number) * (1 + 0.001 * commit.pk)], block=number + 1)
    report = compare(personas, commits)
    assert (report.verdict, report.paired) == ("regressed", True)
    assert report.cases[0].metrics[0].blocks == 7


def test_results_of_an_unknown_configuration_are_a_mismatch(
    personas: Personas, commits: list[Commit]
) -> None:
    elsewhere(commits[0], [100.0] * 5, configuration=1)
    elsewhere(commits[1], [80.0] * 5, configuration=2)
    report = compare(personas, commits)
    (mismatch,) = report.mismatches
    assert (mismatch.aspect, mismatch.baseline, mismatch.contender) == (
        "definition",
        "unknown",
        "unknown",
    )


def test_without_primary_metrics_all_metrics_decide(
    personas: Personas, commits: list[Commit]
) -> None:
    for commit, value in zip(commits[:2], (1.0, 1.5), strict=True):
        for block in range(1, 7):
            elsewhere(commit, [value], key="memory.server_peak", block=block)
    report = compare(personas, commits)
    assert report.verdict == "regressed"
    assert report.cases[0].metrics[0].primary
    page = compare_sides(
        personas.alice,
        benchmark=Benchmark.objects.get(),
        sides=(Side(commit=commits[0]), Side(commit=commits[1])),
        all_metrics=False,
    )
    assert page.verdict == "regressed"


def test_a_case_with_only_excluded_blocks_has_no_values(
    personas: Personas, commits: list[Commit]
) -> None:
    shas = [commit.sha for commit in commits[:3]]
    finish_run(make_run(personas.alice, shas[:2]), [1000, 800])
    Trial.objects.filter(variant__position=1).update(
        validity="invalid", reasons=["tool_busy: 99 %"]
    )
    record_again()
    finish_run(make_run(personas.alice, shas[1:]), [800, 800])
    report = compare(personas, commits)
    (case,) = report.cases
    assert (case.metrics, case.excluded_blocks, case.verdict) == ((), 5, "inconclusive")
    contender = commits[1].short_sha
    assert report.summary == f"No usable data for {contender}: no block is complete and valid."
    assert case.validity_issues[0].trials == 5


@pytest.mark.parametrize("of_run", [False, True])
def test_a_metric_missing_in_some_blocks_does_not_shrink_the_blocks_of_the_case(
    personas: Personas, commits: list[Commit], of_run: bool
) -> None:
    run = make_run(personas.alice, [each.sha for each in commits[:2]], rounds=7)
    finish_run(run, [1000, 800])
    supported = {0: {1, 3, 5, 7}, 1: {1, 5, 7}}
    record_again(
        {
            trial.pk: {"latency.p99.9": 0.02}
            for trial in Trial.objects.select_related("variant")
            if trial.round in supported[trial.variant.position]
        }
    )
    Trial.objects.filter(variant__position=1, round__in=[2, 4, 5]).update(
        validity="suspect", reasons=["steal: 3 %"]
    )
    report = compare_commits(
        personas.alice,
        benchmark=Benchmark.objects.get(),
        baseline=commits[0],
        contender=commits[1],
        run=run if of_run else None,
    )
    (case,) = report.cases
    assert case.source is not None
    assert [len(blocks) for blocks in case.source.blocks] == [7, 7]
    counts = {each.key: each.blocks for each in case.metrics}
    assert (counts["requests.rate"], counts["latency.p99.9"]) == (7, 3)
    assert (case.suspect_blocks, case.excluded_blocks) == (3, 0)
    detail = load_latency_detail(report, case)
    assert [curve and curve.requests for curve in detail.curves] == [7 * 2000, 7 * 2000]
    assert detail.quantiles is not None
    assert detail.quantiles.blocks == 7
    evidence = load_evidence(report, case)
    assert sorted(block.any_trial.round for block in evidence.blocks) == [1, 2, 3, 4, 5, 6, 7]
    assert all(block.counts for block in evidence.blocks)


def test_a_suspect_trial_counts_and_is_reported(personas: Personas, commits: list[Commit]) -> None:
    finish_run(make_run(personas.alice, [each.sha for each in commits[:2]]), [1000, 800])
    Trial.objects.filter(variant__position=1, round=1).update(
        validity="suspect", reasons=["steal: 3 %"]
    )
    record_again()
    report = compare(personas, commits)
    assert (report.cases[0].suspect_blocks, report.cases[0].metrics[0].blocks) == (1, 5)
    assert any("suspect trial" in note for note in report.notes)


def test_a_case_that_always_failed_is_listed(personas: Personas, commits: list[Commit]) -> None:
    run = make_run(personas.alice, [each.sha for each in commits[:2]])
    host = run.jobs.get().host
    Trial.objects.filter(job__run=run).update(state="failed", host=host, message="it fell over")
    (case,) = compare(personas, commits).cases
    assert (case.metrics, case.excluded_blocks) == ((), 5)


def test_missing_blocks_include_those_that_will_be_excluded(
    personas: Personas, commits: list[Commit]
) -> None:
    shas = [commit.sha for commit in commits[:2]]
    run = finish_run(make_run(personas.alice, shas, rounds=4), [1000, 500])
    first = Trial.objects.filter(job__run=run, variant__position=0, round=1)
    first.update(validity="invalid")
    record_again()
    (case,) = compare(personas, commits).cases
    assert (case.metrics[0].blocks, case.excluded_blocks) == (3, 1)
    needed = case.metrics[0].needed
    assert needed is not None
    assert needed.probable == 5
    assert case.missing_blocks == 3, "2 more usable ones, at a usable share of three quarters"


def test_a_case_never_needs_more_blocks_than_a_run_may_have(
    personas: Personas, commits: list[Commit]
) -> None:
    shas = [commit.sha for commit in commits[:2]]
    run = finish_run(make_run(personas.alice, shas, rounds=10), [1000, 1000], wobble=0.0165)
    (case,) = compare(personas, commits).cases
    assert case.missing_blocks is not None
    assert 20 < case.missing_blocks <= MAX_ROUNDS
    assert not case.out_of_reach
    for position, rounds in enumerate(((1,), (2, 3))):
        lost = Trial.objects.filter(job__run=run, variant__position=position, round__in=rounds)
        lost.update(validity="invalid")
    record_again()
    (case,) = compare(personas, commits).cases
    assert (case.missing_blocks, case.missing_s, case.out_of_reach) == (None, None, True)


def test_a_metric_missing_in_some_blocks_needs_more_of_them(
    personas: Personas, commits: list[Commit]
) -> None:
    shas = [commit.sha for commit in commits[:2]]
    finish_run(make_run(personas.alice, shas, rounds=4), [1000, 500])
    readings = Reading.objects.filter(pk__in=Trial.objects.filter(round__gt=2).values("pk"))
    kept = load_values(readings.values_list("pk", flat=True))
    Point.objects.all().delete()
    Reading.objects.all().delete()
    for trial in Trial.objects.select_related("job__host", "job__run", "case", "variant"):
        rate = 1000.0 / (1 + trial.variant.position) + trial.round
        values = kept.get(trial.pk, {"requests.rate": rate})
        record_trial(trial, values)
    (case,) = compare(personas, commits).cases
    blocks = {
        each.key: (each.blocks, each.needed and each.needed.probable) for each in case.metrics
    }
    assert blocks["requests.rate"] == (4, 5)
    assert blocks["latency.p50"] == (2, 5)
    assert case.missing_blocks == 6, "3 more with a latency, which half of the blocks have"


def test_a_change_that_may_be_chance_needs_more_blocks(
    personas: Personas, project: Project, commits: list[Commit]
) -> None:
    """It is significant alone, but not among all metrics of the table."""
    axis = ", ".join(map(str, range(1, 31)))
    source = DEFINITION.replace("connections: [4]", f"connections: [{axis}]")
    make_definition(personas.alice, project, source=source)
    shas = [commit.sha for commit in commits[:2]]
    run = make_run(personas.alice, shas, rounds=7)
    finish_run(run, [1000, 1000], wobble=0.02, factors={"connections 4": 0.93})
    cases = {each.case.label: each for each in compare(personas, commits).cases}
    changed = cases["connections 4"].metrics[0]
    assert (changed.result.verdict, changed.verdict) == ("regressed", "inconclusive")
    assert changed.further is not None
    assert 0 < changed.further.probable < 20


@pytest.mark.parametrize("rates", [[1000, 800], [1000, 1001], [1000, 1040]])
def test_a_comparison_of_the_primary_metrics_alone_has_the_same_verdicts(
    personas: Personas, commits: list[Commit], rates: list[float]
) -> None:
    shas = [commit.sha for commit in commits[:2]]
    finish_run(make_run(personas.alice, shas, rounds=7), rates, wobble=0.01)
    # The baseline is measured next to its own predecessor as well.
    finish_run(make_run(personas.alice, [commits[2].sha, shas[0]]), rates, wobble=0.02)
    benchmark = Benchmark.objects.get()
    sides = Side(commit=commits[0]), Side(commit=commits[1])
    short = compare_sides(personas.alice, benchmark=benchmark, sides=sides, all_metrics=False)
    long = compare_sides(personas.alice, benchmark=benchmark, sides=sides)
    assert (short.summary, short.verdict, short.notes) == (long.summary, long.verdict, long.notes)
    assert (short.tests, short.changed, short.survived) == (long.tests, long.changed, long.survived)
    one, other = short.cases[0], long.cases[0]
    assert (one.verdict, one.missing_blocks) == (other.verdict, other.missing_blocks)
    assert one.missing_s == other.missing_s
    for few, many in zip(one.metrics, other.metrics, strict=False):
        assert (few.key, few.verdict, few.blocks) == (many.key, many.verdict, many.blocks)
        assert few.interval == pytest.approx(many.interval, rel=1e-12)
        assert few.q_value == pytest.approx(many.q_value, rel=1e-9)
        assert few.baseline == pytest.approx(many.baseline, rel=1e-12)
