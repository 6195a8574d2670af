"""Each case is judged by its own metrics: by those of its loop, or by all that it has."""

from uuid import uuid4

import pytest
from django.db import transaction

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.compare import compare_sides
from orchestrator.comparisons.formats import to_markdown
from orchestrator.comparisons.report import CaseComparison, ComparisonReport
from orchestrator.comparisons.sides import Side
from orchestrator.comparisons.verdict_cache import load_verdict_cards
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.measurements.recording import MeasuredRow
from orchestrator.runs.models import Run, Trial
from tests.support.factories import (
    MIXED_LOOPS,
    Personas,
    finish_run,
    make_run,
    record,
    record_again,
)


@pytest.fixture
def source() -> str:
    return MIXED_LOOPS


@pytest.fixture
def run(personas: Personas, commits: list[Commit]) -> Run:
    shas = [each.sha for each in commits[:2]]
    return finish_run(make_run(personas.alice, shas, rounds=7), [1000, 1000])


def compare(
    personas: Personas, commits: list[Commit], *, run: Run | None = None, all_metrics: bool = True
) -> ComparisonReport:
    return compare_sides(
        personas.alice,
        benchmark=Benchmark.objects.get(),
        sides=(Side(commit=commits[0]), Side(commit=commits[1])),
        run=run,
        all_metrics=all_metrics,
    )


def by_loop(report: ComparisonReport) -> dict[str, CaseComparison]:
    return {each.case.parameters["loop"]: each for each in report.cases}


def change_metric(loop: str, metric: str, value: float) -> None:
    """Set a metric of the contender in the cases of this loop, with a little noise."""
    trials = Trial.objects.filter(case__parameters__loop=loop, variant__position=1)
    record_again({each.pk: {metric: value * (1 + each.round / 1000)} for each in trials})


def record_own_metric(commit: Commit, value: float) -> None:
    """Record a metric of a script for a case that has no other metric."""
    benchmark = Benchmark.objects.get()
    case, _ = benchmark.cases.get_or_create(
        key="e" * 16, defaults={"parameters": {"loop": "script"}, "label": "loop script"}
    )
    with transaction.atomic():
        record(
            [
                MeasuredRow(
                    id=uuid4(), benchmark=benchmark.pk, case=case.pk, host=Host.objects.get().pk,
                    commit=commit.pk, at=utc_now(), validity="valid", block=number + 1,
                    readings={"script.parse_s": value * (1 + number / 1000)},
                    provenance={"tool": "script"},
                )
                for number in range(7)
            ]
        )  # fmt: skip


@pytest.mark.usefixtures("run")
def test_each_case_has_the_metrics_of_its_own_loop(
    personas: Personas, commits: list[Commit]
) -> None:
    cases = by_loop(compare(personas, commits))
    primary = {
        loop: {each.key for each in case.metrics if each.primary} for loop, case in cases.items()
    }
    assert primary == {
        "closed": {"requests.rate", "latency.p50", "cpu.seconds_per_1k"},
        "open": {"latency.p99", "latency.p50", "cpu.seconds_per_1k"},
    }
    assert {loop: case.open_loop for loop, case in cases.items()} == {"closed": False, "open": True}


@pytest.mark.parametrize(
    ("loop", "metric", "value", "verdict"),
    [
        ("closed", "requests.rate", 800, "regressed"),
        ("open", "requests.rate", 800, "equivalent"),
        ("open", "latency.p99", 0.02, "regressed"),
        ("closed", "latency.p99", 0.02, "equivalent"),
    ],
)
def test_a_metric_decides_only_in_its_loop(
    personas: Personas, commits: list[Commit], run: Run, loop: str, metric: str, value: float,
    verdict: str,
) -> None:  # fmt: skip
    change_metric(loop, metric, value)
    for report in (
        compare(personas, commits),
        compare(personas, commits, run=run, all_metrics=False),
    ):
        cases = by_loop(report)
        assert cases.pop(loop).verdict == verdict
        assert {case.verdict for case in cases.values()} == {"equivalent"}
    (card,) = load_verdict_cards(personas.alice, [run])[run.pk]
    assert card.verdict == verdict


@pytest.mark.usefixtures("run")
def test_tables_have_values_only_where_a_metric_decides(
    personas: Personas, commits: list[Commit]
) -> None:
    change_metric("open", "latency.p99", 0.02)
    change_metric("closed", "latency.p99", 0.02)
    change_metric("closed", "requests.rate", 800)
    text = to_markdown(compare(personas, commits), web_url="")
    head, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    titles = [each.strip() for each in head.split("|")]
    cells = {
        row[titles.index("Case")]: dict(zip(titles, row, strict=True))
        for line in rows
        if (row := [each.strip() for each in line.split("|")])
    }
    closed, open_ = (cells[f"`loop {loop}, connections 4`"] for loop in ("closed", "open"))
    assert closed["Latency p99"] == open_["Requests per second"] == "–"
    assert closed["Requests per second"].startswith("**−19.7 %**")
    assert open_["Latency p99"].startswith("**+6")


@pytest.mark.parametrize("all_metrics", [True, False])
@pytest.mark.usefixtures("run")
def test_a_metric_of_its_own_decides_a_case_next_to_others(
    personas: Personas, commits: list[Commit], all_metrics: bool
) -> None:
    for commit, value in zip(commits[:2], (1.0, 2.0), strict=True):
        record_own_metric(commit, value)
    report = compare(personas, commits, all_metrics=all_metrics)
    cases = by_loop(report)
    assert report.verdict == cases["script"].verdict == "regressed"
    assert [(each.key, each.primary) for each in cases["script"].metrics] == [
        ("script.parse_s", True)
    ]
    assert {cases[loop].verdict for loop in ("closed", "open")} == {"equivalent"}
