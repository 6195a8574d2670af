"""A comparison states whether its verdict depends on blocks with a suspect trial."""

import csv
import io

import pytest

from cli.pitwall.tables import render_comparison
from orchestrator.benchmarks.models import Benchmark
from orchestrator.comparisons.compare import compare_commits
from orchestrator.comparisons.formats import to_csv, to_dict, to_markdown
from orchestrator.comparisons.report import ComparisonReport
from orchestrator.runs.models import Run, Trial
from tests.support.factories import DEFINITION, finish_run, record_again
from tests.support.trials import STEAL
from tests.support.world import World


@pytest.fixture
def source() -> str:
    return DEFINITION.replace("connections: [4]", "connections: [1, 2]")


def measure(world: World, *, disturbed: float, rounds: int = 10, suspect: int = 2) -> Run:
    """Measure two equal commits; the first blocks of the first case are suspect.

    The rate of the contender in them is multiplied by `disturbed`.
    """
    run = finish_run(world.queue_run(0, 1, rounds=rounds), [1000, 1000])
    which = Trial.objects.filter(
        case__parameters__connections=1, variant__position=1, round__lte=suspect
    )
    which.update(validity="suspect", reasons=[STEAL])
    record_again({trial.pk: {"requests.rate": 1000 * disturbed} for trial in which})
    return run


def compare(world: World, run: Run | None = None) -> ComparisonReport:
    baseline, contender = world.commits[:2]
    benchmark = Benchmark.objects.get()
    return compare_commits(
        world.alice, benchmark=benchmark, baseline=baseline, contender=contender, run=run
    )


@pytest.mark.parametrize("of_run", [True, False])
def test_a_verdict_that_depends_on_suspect_blocks_says_so(world: World, of_run: bool) -> None:
    run = measure(world, disturbed=0.7)
    report = compare(world, run if of_run else None)
    first = next(case for case in report.cases if case.case.parameters["connections"] == 1)
    other = next(case for case in report.cases if case.case.parameters["connections"] == 2)
    assert (first.verdict, first.verdict_without_suspect) == ("inconclusive", "equivalent")
    assert (other.verdict, other.verdict_without_suspect) == ("equivalent", None)
    assert report.sensitivity is not None
    sentence = "Without them the verdict is equivalent, not inconclusive."
    assert any(note.endswith(sentence) for note in report.notes)

    document = to_dict(report, "https://pitwall.example.org")
    assert document["without_suspect"] == {
        "blocks": 2,
        "verdict": "equivalent",
        "counts": {"equivalent": 2},
        "changed_cases": 1,
    }
    assert [case["verdict_without_suspect"] for case in document["cases"]] == ["equivalent", None]
    (reason,) = (
        each for each in document["cases"][0]["reasons"] if each["code"] == "suspect_blocks"
    )
    assert reason["text"] == "blocks with a suspect trial; without them the case is equivalent"
    assert sentence in to_markdown(report, "")
    assert sentence in render_comparison(document)
    rows = list(csv.DictReader(io.StringIO(to_csv(report))))
    assert {(row["case"], row["verdict_without_suspect"]) for row in rows} == {
        (first.case.label, "equivalent"),
        (other.case.label, ""),
    }


def test_a_verdict_that_does_not_depend_on_them_says_so_too(world: World) -> None:
    report = compare(world, measure(world, disturbed=1.0))
    assert report.verdict == "equivalent"
    assert any(
        note.endswith("Without them the verdict is the same, also of each case.")
        for note in report.notes
    )


def test_a_case_of_suspect_blocks_alone_proves_nothing_without_them(world: World) -> None:
    report = compare(world, measure(world, disturbed=1.0, rounds=5, suspect=5))
    assert report.verdict == "equivalent"
    assert report.sensitivity is not None
    assert report.sensitivity.counts == {"inconclusive": 1, "equivalent": 1}
    assert (report.sensitivity.verdict, report.sensitivity.changed) == ("inconclusive", 1)


def test_without_suspect_blocks_there_is_nothing_to_say(world: World) -> None:
    run = finish_run(world.queue_run(0, 1, rounds=5), [1000, 1000])
    report = compare(world, run)
    assert report.sensitivity is None
    assert to_dict(report, "")["without_suspect"] is None
    assert not any("suspect" in note for note in report.notes)


def test_a_case_without_data_comes_after_those_that_are_open(world: World) -> None:
    run = finish_run(world.queue_run(0, 1, rounds=5), [1000, 990], wobble=0.05)
    Trial.objects.filter(case__parameters__connections=1).update(
        validity="invalid", reasons=["swap: x"]
    )
    record_again()
    report = compare(world, run)
    assert [case.outcome for case in report.cases] == ["inconclusive", "no usable data"]
    # The name of the case without data would come first.
    assert [case.case.parameters["connections"] for case in report.cases] == [2, 1]


def test_what_is_not_decided_is_counted_and_no_metric_is_named(world: World) -> None:
    finish_run(world.queue_run(0, 1, rounds=5), [1000, 960], wobble=0.05)
    report = compare(world)
    contender = world.commits[1].short_sha
    assert report.summary == (
        f"Inconclusive for {contender}: 6 of 6 primary metrics are not decided. "
        "2 inconclusive of 2 cases."
    )
