"""Two commits are compared by the blocks that they share, and by nothing else."""

import pytest

from orchestrator.benchmarks.models import Benchmark, Commit, Project
from orchestrator.comparisons.compare import compare_commits
from orchestrator.comparisons.evidence import load_latency_detail
from orchestrator.comparisons.report import ComparisonReport
from orchestrator.comparisons.sides import load_measured_commits
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.histories.histories import load_case_history
from orchestrator.runs.models import Run, Trial
from tests.support.factories import (
    DEFINITION,
    Personas,
    finish_run,
    make_definition,
    make_run,
    record_again,
)


def measure(personas: Personas, commits: list[Commit], rates: list[float]) -> None:
    finish_run(make_run(personas.alice, [commit.sha for commit in commits], rounds=7), rates)


def compare(personas: Personas, before: Commit, after: Commit) -> ComparisonReport:
    return compare_commits(
        personas.alice, benchmark=Benchmark.objects.get(), baseline=before, contender=after
    )


@pytest.mark.parametrize(
    ("rate", "verdict"), [(800, "regressed"), (1300, "improved"), (1001, "equivalent")]
)
def test_a_comparison_has_a_verdict(
    personas: Personas, commits: list[Commit], rate: float, verdict: str
) -> None:
    measure(personas, commits[:2], [1000, rate])
    report = compare(personas, commits[0], commits[1])
    assert report.verdict == verdict
    row = report.cases[0].metrics[0]
    assert (row.key, row.primary, row.blocks) == ("requests.rate", True, 7)
    assert row.change == pytest.approx(rate / 1000 - 1, abs=0.01)
    assert row.interval is not None
    assert row.interval[0] <= row.change <= row.interval[1]


def test_blocks_with_interim_analyses_are_weaker_evidence(
    personas: Personas, commits: list[Commit]
) -> None:
    """p is 0.0145: enough for one look, and for none of several."""
    run = make_run(personas.alice, [commit.sha for commit in commits[:2]], rounds=7)
    finish_run(run, [1000, 950], wobble=0.02)
    assert compare(personas, commits[0], commits[1]).verdict == "regressed"
    Run.objects.update(until="decided")
    looked = compare(personas, commits[0], commits[1])
    assert (looked.verdict, looked.survived) == ("inconclusive", 0)


def test_swapping_the_sides_swaps_the_sign(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, commits[:2], [1000, 800])
    assert compare(personas, commits[1], commits[0]).verdict == "improved"


def test_commits_never_measured_together_are_compared_with_a_warning(
    personas: Personas, commits: list[Commit]
) -> None:
    measure(personas, commits[:2], [1000, 800])
    measure(personas, commits[1:], [800, 700])
    report = compare(personas, commits[0], commits[2])
    (case,) = report.cases
    assert (report.verdict, report.paired, case.paired) == ("regressed", False, False)
    assert report.notes[0].startswith("Unpaired")
    assert "machine drift may be part of the difference" in report.notes[0]
    assert all("machine drift" in metric.reasons[0] for metric in case.metrics)
    assert case.metrics[0].change == pytest.approx(-0.3, abs=0.01)
    assert report.mismatches == ()


def test_an_equal_or_unmeasured_commit_is_refused(
    personas: Personas, commits: list[Commit]
) -> None:
    measure(personas, commits[:2], [1000, 800])
    with pytest.raises(InvalidRequestError, match="itself"):
        compare(personas, commits[0], commits[0])
    with pytest.raises(NotFoundError, match="start a run with both"):
        compare(personas, commits[0], commits[2])


def test_a_comparison_of_a_run_uses_only_its_blocks(
    personas: Personas, commits: list[Commit]
) -> None:
    first = finish_run(make_run(personas.alice, [each.sha for each in commits[:2]]), [1000, 800])
    other = finish_run(make_run(personas.alice, [each.sha for each in commits[1:]]), [800, 700])
    measure(personas, commits[:2], [1000, 1000])
    benchmark = Benchmark.objects.get()
    report = compare_commits(
        personas.alice, benchmark=benchmark, baseline=commits[0], contender=commits[1], run=first
    )
    assert (report.verdict, report.cases[0].metrics[0].blocks) == ("regressed", 5)
    assert compare(personas, commits[0], commits[1]).cases[0].metrics[0].blocks == 12
    with pytest.raises(NotFoundError, match="this run did not measure"):
        compare_commits(
            personas.alice,
            benchmark=benchmark,
            baseline=commits[0],
            contender=commits[1],
            run=other,
        )


def test_a_comparison_is_hidden_from_strangers(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, commits[:2], [1000, 800])
    with pytest.raises(NotFoundError):
        compare_commits(
            personas.mallory,
            benchmark=Benchmark.objects.get(),
            baseline=commits[0],
            contender=commits[1],
        )
    assert load_measured_commits(personas.mallory, Benchmark.objects.get()) == []


def test_an_invalid_trial_excludes_its_block(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, commits[:2], [1000, 800])
    Trial.objects.filter(variant__position=1, round__lte=3).update(validity="invalid")
    record_again()
    report = compare(personas, commits[0], commits[1])
    assert report.cases[0].excluded_blocks == 3
    assert report.cases[0].metrics[0].blocks == 4
    assert report.verdict == "inconclusive"
    assert any("do not rely" in note for note in report.notes)


def test_versions_of_the_definition_are_not_mixed(
    personas: Personas, project: Project, commits: list[Commit]
) -> None:
    measure(personas, commits[:2], [1000, 800])
    make_definition(
        personas.alice, project, source=DEFINITION.replace("duration_s: 0.6", "duration_s: 0.7")
    )
    measure(personas, commits[:2], [5000, 5005])
    report = compare(personas, commits[0], commits[1])
    assert report.verdict == "equivalent"
    assert report.cases[0].metrics[0].blocks == 7
    assert any("version 2" in note for note in report.notes)


def test_merged_distributions_omit_unsupported_percentiles(
    personas: Personas, commits: list[Commit]
) -> None:
    measure(personas, commits[:2], [1000, 800])
    report = compare(personas, commits[0], commits[1])
    curve, other = load_latency_detail(report, report.cases[0]).curves
    assert curve is not None
    assert other is not None
    assert curve.requests == 7 * 2000
    values = dict(zip(curve.percentiles, curve.seconds, strict=True))
    assert values[50] == pytest.approx(0.0064, rel=0.05)
    assert values[99.9] is not None
    assert values[99.99] is None


def test_a_history_follows_the_commits(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, [commits[2], commits[0]], [700, 1000])
    measure(personas, commits[:2], [1000, 900])
    benchmark = Benchmark.objects.get()
    history = load_case_history(
        personas.alice,
        benchmark=benchmark,
        metric_key="requests.rate",
        case=benchmark.cases.get(),
        host=personas.alice.team.hosts.get(),
    )
    assert [point.commit for point in history.points] == commits
    assert [point.trials for point in history.points] == [14, 7, 7]
    assert [round(point.value, -2) for point in history.points] == [1000, 900, 700]
