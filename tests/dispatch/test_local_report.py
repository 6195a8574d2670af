"""The report of a local run is the comparison of the API, and needs no database."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.schemas.comparisons import ComparisonOut
from orchestrator.comparisons.same_builds import IdentifiedBuild
from orchestrator.dispatch.here.reading import MeasuredTrial
from orchestrator.dispatch.here.report import build_local_report
from orchestrator.dispatch.here.rows import LocalRequest, LocalRows, build_rows
from tests.support.factories import DEFINITION, MIXED_LOOPS

SOURCE = DEFINITION.replace("connections: [4]", "connections: [1, 2]")
ROUNDS = 7


def local_rows(shas: str = "ab") -> LocalRows:
    commits = tuple(letter * 40 for letter in shas)
    return build_rows(
        LocalRequest(source=SOURCE, repository=Path("/nowhere"), shas=commits, rounds=ROUNDS)
    )


def measure_all(rows: LocalRows) -> dict[str, MeasuredTrial]:
    """The contender has 20 % less requests per second."""
    trials = {}
    for trial in rows.trials:
        rate = (1000 + trial.round) * (1 - 0.2 * trial.variant.position)
        readings = {"requests.rate": rate, "latency.p50": 4 / rate}
        trials[str(trial.pk)] = MeasuredTrial(readings=readings)
    return trials


def trial_id(rows: LocalRows, case: int, variant: int, number: int) -> str:
    (trial,) = (
        trial
        for trial in rows.trials
        if (trial.case.pk, trial.variant.position, trial.round) == (case, variant, number)
    )
    return str(trial.pk)


def cases_by_id(report: dict[str, Any]) -> dict[int, Any]:
    return {case["case"]["parameters"]["connections"]: case for case in report["cases"]}


def test_a_local_comparison_has_the_form_of_the_api() -> None:
    rows = local_rows()

    report = build_local_report(rows, measure_all(rows), ["on a laptop"], ())

    ComparisonOut.model_validate(report)
    assert report["verdict"] == "regressed"
    assert report["notes"] == [
        "on a laptop",
        "Server and load generator shared one machine and talked over loopback.",
    ]
    effects = [case["metrics"][0]["order_effect"]["change"] for case in report["cases"]]
    assert effects == pytest.approx([0.0, 0.0])
    for case in report["cases"]:
        metrics = {metric["metric"]: metric for metric in case["metrics"]}
        assert metrics["requests.rate"]["change"] == pytest.approx(-0.2)
        assert metrics["requests.rate"]["blocks"] == ROUNDS
        assert case["latency"] is None


def test_a_local_comparison_says_that_both_commits_gave_the_same_build() -> None:
    rows = local_rows()
    builds = [
        IdentifiedBuild(variant.commit.pk, ("", "r"), "digest", "source")
        for variant in rows.variants
    ]
    report = build_local_report(rows, measure_all(rows), [], builds)
    assert "Both commits gave the same build, byte for byte" in report["notes"][0]


def test_a_failed_trial_excludes_its_block_and_a_suspect_one_does_not() -> None:
    rows = local_rows()
    trials = measure_all(rows)
    trials[trial_id(rows, 1, 1, 3)] = MeasuredTrial(failure="the server died")
    suspect = trial_id(rows, 1, 0, 5)
    trials[suspect] = MeasuredTrial(readings=trials[suspect].readings, reasons=("swapping: 4 MiB",))

    report = build_local_report(rows, trials, [], ())

    first = cases_by_id(report)[1]
    assert (first["excluded_blocks"], first["suspect_blocks"]) == (1, 1)
    assert [issue["code"] for issue in first["validity_issues"]] == ["swapping"]
    assert {metric["blocks"] for metric in first["metrics"]} == {ROUNDS - 1}
    assert "1 of 14 blocks were excluded: a trial failed or is invalid." in report["notes"]


@pytest.mark.parametrize(
    ("failed", "verdict"),
    [
        (MeasuredTrial(failure="it does not build", code="build_failed"), "broken"),
        (MeasuredTrial(invalid=True, reasons=("underdelivered: 80 %",)), "saturated"),
        (MeasuredTrial(failure="no program", code="tool_missing"), "inconclusive"),
    ],
)
def test_a_contender_that_fails_in_one_case_fails_the_local_comparison(
    failed: MeasuredTrial, verdict: str
) -> None:
    rows = local_rows()
    trials = measure_all(rows)
    for number in range(1, ROUNDS + 1):
        trials[trial_id(rows, 2, 1, number)] = failed

    report = build_local_report(rows, trials, [], ())

    ComparisonOut.model_validate(report)
    assert cases_by_id(report)[2]["verdict"] == verdict
    assert report["verdict"] == ("regressed" if verdict == "inconclusive" else verdict)
    assert report["counts"] == {verdict: 1, "regressed": 1}


def test_a_case_without_trials_is_inconclusive() -> None:
    rows = local_rows()
    trials = measure_all(rows)
    for number in range(1, ROUNDS + 1):
        for variant in (0, 1):
            del trials[trial_id(rows, 2, variant, number)]

    cases = cases_by_id(build_local_report(rows, trials, [], ()))

    assert cases[1]["verdict"] == "regressed"
    assert cases[2]["verdict"] == "inconclusive"
    assert cases[2]["excluded_blocks"] == ROUNDS


def test_one_commit_alone_has_values_instead_of_changes() -> None:
    rows = local_rows("a")

    report = build_local_report(rows, measure_all(rows), [], ())

    assert report["contender"] is None
    for case in report["cases"]:
        metrics = {metric["metric"]: metric for metric in case["metrics"]}
        assert metrics["requests.rate"]["value"] == pytest.approx(1004, rel=1e-5)
        assert metrics["requests.rate"]["trials"] == ROUNDS


def test_each_case_of_a_mixed_matrix_is_judged_by_its_own_loop() -> None:
    commits = ("a" * 40, "b" * 40)
    rows = build_rows(
        LocalRequest(source=MIXED_LOOPS, repository=Path("/nowhere"), shas=commits, rounds=ROUNDS)
    )
    trials = {
        str(trial.pk): MeasuredTrial(
            readings={
                "requests.rate": 100.0 + 0.1 * trial.round,
                "latency.p99": (1 + 0.001 * trial.round) * (1 + trial.variant.position),
            }
        )
        for trial in rows.trials
    }
    report = build_local_report(rows, trials, [], ())
    verdicts = {
        case["case"]["parameters"]["loop"]: (case["verdict"], case["open_loop"])
        for case in report["cases"]
    }
    assert verdicts == {"closed": ("equivalent", False), "open": ("regressed", True)}
