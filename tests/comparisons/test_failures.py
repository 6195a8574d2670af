"""A commit that fails in some cases is broken, however its other cases perform."""

import csv
from io import StringIO

import pytest

from orchestrator.benchmarks.models import Benchmark
from orchestrator.comparisons.compare import compare_commits, compare_sides
from orchestrator.comparisons.formats import to_csv, to_dict, to_markdown
from orchestrator.comparisons.report import CaseComparison, ComparisonReport
from orchestrator.comparisons.sides import Side
from orchestrator.comparisons.verdict_cache import load_verdict_cards, store_missing_verdicts
from orchestrator.loadtools.metrics import find_metrics
from orchestrator.measurements.readings import load_values
from orchestrator.results.models import Point, Reading
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.selectors import load_run
from tests.support.factories import DEFINITION, finish_run, record_again, record_trial
from tests.support.trials import BUSY, DIED, ERRORS, SLOW, invalidate
from tests.support.world import World

CASES = 20


@pytest.fixture
def source() -> str:
    axis = ", ".join(map(str, range(1, CASES + 1)))
    return DEFINITION.replace("connections: [4]", f"connections: [{axis}]")


def measure(world: World, *, cases: int, rounds: int = 5, **changes: object) -> Run:
    """A measured run of two commits that perform the same."""
    chosen = f"connections <= {cases}"
    run = world.queue_run(0, 1, rounds=rounds, cases=chosen, **changes)
    return finish_run(run, [1000, 1000])


def fail_side(run: Run, reason: str, *, side: int, cases: int, rounds: int = 100) -> Run:
    """Make the trials of one side invalid in the first cases and rounds."""
    which = {"case__parameters__connections__lte": cases, "round__lte": rounds}
    return invalidate(run, reason, variant__position=side, **which)


def compare(world: World, run: Run | None = None) -> ComparisonReport:
    baseline, contender = world.commits[:2]
    benchmark = Benchmark.objects.get()
    return compare_commits(
        world.alice, benchmark=benchmark, baseline=baseline, contender=contender, run=run
    )


def get_case(report: ComparisonReport, connections: int) -> CaseComparison:
    return next(case for case in report.cases if case.case.parameters["connections"] == connections)


@pytest.mark.parametrize("of_run", [True, False])
def test_a_server_that_dies_in_three_of_twenty_cases_is_broken(world: World, of_run: bool) -> None:
    run = fail_side(measure(world, cases=CASES), DIED, side=1, cases=3)
    report = compare(world, run if of_run else None)
    before, after = (commit.short_sha for commit in world.commits[:2])
    assert report.verdict == "broken"
    assert report.counts == {"broken": 3, "equivalent": 17}
    assert report.summary == (
        f"{after} is broken: it fails where {before} works. 3 broken, 17 equivalent of 20 cases."
    )
    assert [case.verdict for case in report.cases[:4]] == ["broken"] * 3 + ["equivalent"]
    assert report.cases[0].outcome == "broken"
    document = to_dict(report, "")
    assert document["counts"] == {"broken": 3, "equivalent": 17}
    (first, *_) = document["cases"]
    assert (first["verdict"], first["contender_failed"], first["baseline_failed"]) == (
        "broken",
        5,
        0,
    )
    assert first["reasons"][0] == {
        "code": "contender_failed",
        "metric": None,
        "count": 5,
        "text": "the contender failed in 5 of 5 blocks",
    }
    assert to_markdown(report, "").startswith("**✕ broken**")
    assert to_csv(report).count(",broken,") == 3


def test_the_verdict_of_a_broken_contender_is_stored_with_its_run(world: World) -> None:
    run = fail_side(measure(world, cases=2), DIED, side=1, cases=1)
    store_missing_verdicts()
    (card,) = load_verdict_cards(world.alice, [load_run(world.alice, run.pk)])[run.pk]
    assert (card.verdict, card.counts) == ("broken", {"broken": 1, "equivalent": 1})
    assert [(each.verdict, each.change) for each in card.changes] == [("broken", None)]


def test_a_contender_that_never_works_is_broken_and_no_missing_data(world: World) -> None:
    run = fail_side(measure(world, cases=1), DIED, side=1, cases=1)
    report = compare(world, run)
    assert (report.verdict, report.outcome, report.cases[0].metrics) == ("broken", "broken", ())
    (card,) = load_verdict_cards(world.alice, [load_run(world.alice, run.pk)])[run.pk]
    assert card.verdict == "broken"


def test_a_failed_build_is_broken_after_one_round(world: World) -> None:
    """The case is skipped after the first round: there are no more blocks."""
    run = measure(world, cases=2)
    failing = Trial.objects.filter(case__parameters__connections=1)
    failing.filter(round__gt=1).delete()
    failing.filter(variant__position=1).update(
        state="failed", validity="", reasons=["build_failed"], message="make: error"
    )
    Reading.objects.exclude(pk__in=Trial.objects.filter(state="measured")).delete()
    record_again()
    report = compare(world, run)
    assert report.counts == {"broken": 1, "equivalent": 1}
    assert "the contender failed in 1 of 1 block" in str(to_dict(report, "")["cases"][0])


@pytest.mark.parametrize(
    ("reason", "side", "rounds", "verdict"),
    [
        (SLOW, 1, 5, "saturated"),
        (ERRORS, 1, 3, "broken"),
        # Two of ten blocks are not enough, and the rest is equivalent.
        (ERRORS, 1, 2, "equivalent"),
        # The environment is no fault of the contender, but too much is missing.
        (BUSY, 1, 5, "inconclusive"),
        (ERRORS, 0, 5, "fixed"),
    ],
)
def test_the_reason_and_the_side_of_failures_decide(
    world: World, reason: str, side: int, rounds: int, verdict: str
) -> None:
    run = fail_side(measure(world, cases=2, rounds=10), reason, side=side, cases=1, rounds=rounds)
    report = compare(world, run)
    assert get_case(report, 1).verdict == verdict
    assert get_case(report, 2).verdict == "equivalent"


def test_two_sides_that_both_fail_are_inconclusive(world: World) -> None:
    run = measure(world, cases=2)
    fail_side(run, DIED, side=0, cases=1)
    fail_side(run, ERRORS, side=1, cases=1)
    report = compare(world, run)
    assert report.counts == {"inconclusive": 1, "equivalent": 1}
    assert report.verdict == "inconclusive"
    assert "some cases have no usable data" in report.summary


def test_a_case_of_one_side_enters_the_verdict(world: World) -> None:
    run = measure(world, cases=3)
    lost = Trial.objects.filter(variant__position=1, case__parameters__connections=1)
    Reading.objects.filter(pk__in=lost.values("pk")).delete()
    lost.update(state="skipped", validity="", message="budget spent")
    record_again()
    for report in (compare(world, run), compare(world)):
        assert report.counts == {"inconclusive": 1, "equivalent": 2}
        case = get_case(report, 1)
        assert (case.outcome, case.metrics) == ("no usable data", ())
        codes = [reason["code"] for reason in to_dict(report, "")["cases"][0]["reasons"]]
        assert codes == ["one_sided"]
        assert any("1 case was measured on one side only" in note for note in report.notes)


def test_the_limit_of_excluded_blocks_holds_for_each_case(world: World) -> None:
    run = measure(world, cases=CASES, rounds=10)
    fail_side(run, BUSY, side=0, cases=2, rounds=2)
    fail_side(run, BUSY, side=0, cases=1, rounds=4)
    report = compare(world, run)
    assert report.counts == {"inconclusive": 1, "equivalent": 19}
    case = get_case(report, 1)
    assert (case.excluded_blocks, case.withheld) == (4, "too_many_excluded")
    assert {metric.verdict for metric in case.metrics} == {"inconclusive"}
    assert case.missing_blocks is None, "more blocks like these do not help"
    assert "1 of 20 cases: more than 30 % of the blocks are excluded" in " ".join(report.notes)
    reasons = [each["code"] for each in to_dict(report, "")["cases"][0]["reasons"]]
    assert set(reasons) == {"too_many_excluded", "excluded_blocks"}


def test_a_side_that_loses_more_blocks_is_never_equivalent(world: World) -> None:
    run = measure(world, cases=3, rounds=25)
    fail_side(run, BUSY, side=1, cases=1, rounds=6)
    both = {"case__parameters__connections": 2, "round__lte": 6}
    invalidate(run, BUSY, **both)
    report = compare(world, run)
    assert get_case(report, 1).withheld == "exclusions_differ"
    verdicts = [get_case(report, number).verdict for number in (1, 2, 3)]
    assert verdicts == ["inconclusive", "equivalent", "equivalent"]
    assert "one side lost more blocks than the other" in " ".join(report.notes)


def test_an_improvement_of_many_cases_is_not_hidden_by_an_open_one(world: World) -> None:
    run = world.queue_run(0, 1, rounds=10, cases="connections <= 4")
    finish_run(run, [1000, 1000], factors={f"connections {each}": 1.2 for each in (1, 2, 3)})
    fail_side(run, BUSY, side=0, cases=1)
    report = compare(world, run)
    assert report.verdict == "improved"
    assert report.summary.endswith(" 2 improved, 1 inconclusive, 1 equivalent of 4 cases.")


def test_metrics_for_information_are_corrected_among_themselves(world: World) -> None:
    """One of 20 informing metrics looks changed by chance; the primary ones are equal."""
    run = measure(world, cases=CASES, rounds=6)
    wobble = (0.01, -0.01, 0.02, -0.02, 0.0, 0.012)
    changed = {}
    for trial in Trial.objects.select_related("variant", "case"):
        shift = 0.08 if trial.case.parameters["connections"] == 1 else 0.001
        size = 1 + trial.variant.position * (shift + 3 * wobble[trial.round - 1])
        changed[trial.pk] = {"memory.server_peak": 1e6 * size}
    record_again(changed)
    report = compare(world, run)
    metrics = {
        case.case.parameters["connections"]: metric
        for case in report.cases
        for metric in case.metrics
        if metric.key == "memory.server_peak"
    }
    (first,) = find_metrics(["memory.server_peak"])
    assert (metrics[1].primary, first.informational) == (False, False)
    assert metrics[1].result.verdict == "regressed", "alone it looks changed"
    assert metrics[1].verdict == "inconclusive"
    assert metrics[1].q_value is not None
    assert report.tests == 3 * CASES, "the primary metrics are a family of their own"


def test_a_custom_metric_decides_its_case_next_to_cases_of_standard_metrics(world: World) -> None:
    run = measure(world, cases=2, rounds=6)
    kept = load_values(Reading.objects.values_list("pk", flat=True))
    Point.objects.all().delete()
    Reading.objects.all().delete()
    for trial in Trial.objects.select_related("job__host", "job__run", "case", "variant"):
        own = {"script.parse_s": (1 + 0.001 * trial.round) * (1 + trial.variant.position)}
        is_script = trial.case.parameters["connections"] == 1
        record_trial(trial, own if is_script else kept[trial.pk])
    sides = Side(commit=world.commits[0]), Side(commit=world.commits[1])
    short = compare_sides(
        world.alice, benchmark=world.benchmark, sides=sides, run=run, all_metrics=False
    )
    for report in (compare(world, run), short):
        case = get_case(report, 1)
        assert (report.verdict, case.verdict) == ("regressed", "regressed")
        assert case.metrics[0].change == pytest.approx(1.0)


def test_the_change_with_saturated_blocks_is_next_to_the_interval(world: World) -> None:
    """The contender is saturated in three of 20 blocks: too few for a verdict, and its slowest."""
    run = measure(world, cases=2, rounds=20)
    which = {"case__parameters__connections": 1, "variant__position": 1, "round__lte": 3}
    for trial in Trial.objects.filter(**which).select_related("job__host", "case", "variant"):
        readings = load_values([trial.pk])[trial.pk]
        Reading.objects.filter(pk=trial.pk).delete()
        record_trial(trial, {**readings, "latency.p50": 2 * readings["latency.p50"]})
    fail_side(run, SLOW, side=1, cases=1, rounds=3)
    for report in (compare(world, run), compare(world)):
        p50 = next(each for each in get_case(report, 1).metrics if each.key == "latency.p50")
        full = p50.with_saturated
        assert full is not None
        assert (full.bound, full.blocks, p50.blocks) == ("at_least", 3, 17)
        assert p50.change == pytest.approx(0, abs=0.01)
        assert full.change == pytest.approx(2 ** (3 / 20) - 1, rel=0.1)
        assert full.low < full.change < full.high
        others = {each.key for each in get_case(report, 1).metrics if each.with_saturated}
        assert all(key.startswith("latency.") for key in others)
        assert not any(each.with_saturated for each in get_case(report, 2).metrics)
        metrics = next(
            each["metrics"]
            for each in to_dict(report, "")["cases"]
            if each["case"]["parameters"]["connections"] == 1
        )
        exported = next(each for each in metrics if each["metric"] == "latency.p50")
        assert exported["with_saturated"] == {
            "change": full.change,
            "interval": (full.low, full.high),
            "bound": "at_least",
            "blocks": 3,
        }
        rows = list(csv.DictReader(StringIO(to_csv(report))))
        shown = {row["saturated_blocks"] for row in rows if row["metric"] == "latency.p50"}
        assert shown == {"3", "0"}


def test_void_and_broken_trials_add_no_values(world: World) -> None:
    run = measure(world, cases=1, rounds=20)
    fail_side(run, ERRORS, side=1, cases=1, rounds=2)
    invalidate(run, BUSY, variant__position=0, round=3)
    invalidate(run, SLOW, variant__position=1, round=3)
    metrics = get_case(compare(world, run), 1).metrics
    assert metrics
    assert not any(metric.with_saturated for metric in metrics)
