"""Two commits are compared by the blocks that they share, and by nothing else."""

import pytest

from orchestrator.benchmarks.models import Benchmark, Commit, Project
from orchestrator.comparisons.compare import compare_commits
from orchestrator.comparisons.evidence import load_latency_detail
from orchestrator.comparisons.exclusions import load_shared_runs
from orchestrator.comparisons.report import ComparisonReport
from orchestrator.comparisons.sides import load_measured_commits
from orchestrator.comparisons.spending import load_spending
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.histories.histories import load_case_history
from orchestrator.runs.models import Run, Trial
from orchestrator.stats.alpha_spending import Spending
from tests.support.factories import (
    DEFINITION,
    Personas,
    finish_run,
    make_definition,
    make_run,
    record_again,
)

RATES = [1000, 940]


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
    """p is about 0.014: enough for one look, and for none of several."""
    run = make_run(personas.alice, [commit.sha for commit in commits[:2]], rounds=7)
    finish_run(run, [1000, 937], wobble=0.02)
    assert compare(personas, commits[0], commits[1]).verdict == "regressed"
    Run.objects.update(until="decided")
    looked = compare(personas, commits[0], commits[1])
    assert (looked.verdict, looked.survived) == ("inconclusive", 0)


def test_blocks_of_two_runs_are_weaker_evidence_than_those_of_one(
    personas: Personas, commits: list[Commit]
) -> None:
    """The rates are the same, but the second run was started when the first was known."""
    one, other = commits[:2], commits[1:3]
    finish_run(make_run(personas.alice, [each.sha for each in one], rounds=10), RATES, wobble=0.02)
    for _ in range(2):
        run = make_run(personas.alice, [each.sha for each in other], rounds=5)
        finish_run(run, RATES, wobble=0.02)
    once, twice = compare(personas, *one), compare(personas, *other)
    first, second = once.cases[0].metrics[0], twice.cases[0].metrics[0]
    assert first.blocks == second.blocks == 10
    # The random order of the trials moves p a little.
    for metric in (first, second):
        assert metric.p_value is not None
        assert 0.005 < metric.p_value < 0.0125
    assert (once.verdict, twice.verdict) == ("regressed", "inconclusive")
    alone = compare_commits(
        personas.alice,
        benchmark=Benchmark.objects.get(),
        baseline=other[0],
        contender=other[1],
        run=run,
    )
    assert alone.cases[0].metrics[0].blocks == 5


def test_only_runs_that_allow_a_verdict_spend_alpha(
    personas: Personas, commits: list[Commit]
) -> None:
    shas, benchmark = [commit.sha for commit in commits[:2]], Benchmark.objects.get()
    for rounds, until, expected in (
        (3, "rounds", Spending()),
        (5, "rounds", Spending()),
        (5, "decided", Spending(runs=2, analyses=5)),
        (2, "rounds", Spending(runs=3)),
    ):
        run = finish_run(make_run(personas.alice, shas, rounds=rounds), RATES)
        Run.objects.filter(pk=run.pk).update(until=until)
        case = compare(personas, commits[0], commits[1]).cases[0].source
        assert case is not None
        runs = load_shared_runs(benchmark, commits[0], commits[1])
        assert load_spending(runs, [case]) == {"0": expected}


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
    assert (report.verdict, report.paired, case.paired) == ("inconclusive", False, False)
    assert report.outcome == case.outcome == "differs, not confirmed"
    assert "differs, not confirmed: 3 of 3 primary metrics are not decided" in report.summary
    assert report.notes[0].startswith("Unpaired")
    assert "machine drift may be part of the difference" in report.notes[0]
    assert all("machine drift" in metric.reasons[0] for metric in case.metrics)
    assert case.metrics[0].change == pytest.approx(-0.3, abs=0.01)
    assert (case.metrics[0].interval, case.metrics[0].p_value) == (None, None)
    assert report.mismatches == ()


@pytest.mark.parametrize(("rate", "verdict"), [(700, "regressed"), (1000, "equivalent")])
def test_three_runs_of_each_side_confirm_a_difference(
    personas: Personas, commits: list[Commit], rate: float, verdict: str
) -> None:
    for number, level in enumerate((0.99, 1.0, 1.01)):
        measure(personas, commits[:2], [1000 * level, 800])
        if number == 2:
            # Two runs of the contender do not suffice.
            report = compare(personas, commits[0], commits[2])
            assert report.verdict == "inconclusive"
            assert "3 and 2 of at least 3 runs" in report.cases[0].metrics[0].reasons[1]
        measure(personas, commits[1:], [800, rate * level])
    report = compare(personas, commits[0], commits[2])
    metric = report.cases[0].metrics[0]
    assert (report.verdict, report.paired, report.outcome) == (verdict, False, verdict)
    assert metric.result.degrees == pytest.approx(4)
    assert metric.blocks == 21
    low, high = metric.interval or (0.0, 0.0)
    assert low < rate / 1000 - 1 < high
    # Of run means that differ by 1 %, not of 21 trials that differ by less.
    assert high - low > 0.03


def delay_second_trials(factor: float) -> None:
    """Change the results as if the second trial of each block were slower by this factor."""
    changed = {}
    for trial in Trial.objects.all():
        if trial.position % 2:
            rate = 1000 if trial.variant.position == 0 else 1002
            changed[trial.pk] = {"requests.rate": rate * factor}
    record_again(changed)


def test_the_order_effect_is_separated_from_the_change(
    personas: Personas, commits: list[Commit]
) -> None:
    measure(personas, commits[:2], [1000, 1002])
    delay_second_trials(0.95)
    report = compare(personas, commits[0], commits[1])
    rate, *others = (each for each in report.cases[0].metrics if each.primary)
    effect = rate.result.order_effect
    assert rate.key == "requests.rate"
    assert rate.verdict == "equivalent"
    assert effect is not None
    assert effect.low < -0.05 < effect.high < -0.04
    assert (rate.blocks, rate.result.degrees, rate.result.order_note) == (7, 5, "")
    (note,) = (each for each in report.notes if "order" in each)
    assert "1 metric depends on the order of the trials in a block" in note
    assert "requests per second changes by −5" in note
    for other in others:
        assert other.result.order_effect is not None


def test_blocks_in_one_order_cannot_separate_its_effect(
    personas: Personas, commits: list[Commit]
) -> None:
    measure(personas, commits[:2], [1000, 1002])
    first = Trial.objects.filter(variant__position=0).order_by("position")
    late = [each.round for each in first if each.position % 2]
    Trial.objects.filter(round__in=late).update(validity="invalid")
    record_again()
    (case,) = compare(personas, commits[0], commits[1]).cases
    result = case.metrics[0].result
    assert (result.order_effect, case.excluded_blocks) == (None, len(late))
    assert f"first in 0 and second in {7 - len(late)} blocks" in result.order_note


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
    assert any("more than 30 % of the blocks are excluded" in note for note in report.notes)


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
