"""The sizes of suites for their reports: valid, with enough runs, within three hours."""

from pathlib import Path

import pytest

from devstack.seeds import MOST_REPORT_S, SUITES
from orchestrator.benchmarks.choice import choose
from orchestrator.benchmarks.load_specs import estimate_trials_s
from orchestrator.benchmarks.matrix import CaseSpec, expand
from orchestrator.benchmarks.report_size import ReportSize, build_report_size
from orchestrator.benchmarks.spec import Spec, parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.report_spec import ReportSpec, parse_all

FOLDER = Path(__file__).parents[2] / "agents" / "suites"


def read(suite: str) -> tuple[ReportSize, Spec]:
    source = (FOLDER / suite / "benchmark.yaml").read_text()
    size = build_report_size(source, (FOLDER / suite / "report-size.yaml").read_text())
    return size, parse(size.source)


def choose_cases(size: ReportSize, spec: Spec) -> list[list[CaseSpec]]:
    return [choose(spec, expand(spec), part.cases) for part in size.parts]


def read_reports(suite: str) -> tuple[ReportSpec, ...]:
    return parse_all((FOLDER / suite / "report.yaml").read_text())


def test_all_reports_together_take_at_most_three_hours() -> None:
    seconds = 0.0
    for suite in SUITES.values():
        size, spec = read(suite)
        for part, cases in zip(size.parts, choose_cases(size, spec), strict=True):
            seconds += (
                sum(estimate_trials_s(spec, cases)) * spec.rounds * part.commits * size.repeats
            )
    # Builds, checks and the start of each job come in addition.
    assert seconds < 0.85 * MOST_REPORT_S


@pytest.mark.parametrize("suite", SUITES.values())
def test_each_case_is_measured_in_one_part(suite: str) -> None:
    size, spec = read(suite)
    keys = [case.key for cases in choose_cases(size, spec) for case in cases]
    assert len(keys) == len(set(keys))
    assert size.repeats * spec.rounds >= 5


@pytest.mark.parametrize("suite", SUITES.values())
def test_the_report_size_measures_all_cases_of_the_claims(suite: str) -> None:
    """Both sides of each claim select cases, and each of them is measured."""
    size, spec = read(suite)
    measured = {case.key for cases in choose_cases(size, spec) for case in cases}
    claims = [claim for report in read_reports(suite) for claim in report.claims]
    assert claims
    for claim in claims:
        for side in filter(None, (claim.cases, claim.than)):
            chosen = choose(spec, expand(spec), side)
            assert {case.key for case in chosen} <= measured, (claim.claim, side)


def test_there_are_at_least_twenty_claims() -> None:
    claims = [
        claim
        for suite in SUITES.values()
        for report in read_reports(suite)
        for claim in report.claims
    ]
    assert len(claims) >= 20
    assert all(claim.source and claim.published for claim in claims)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("changes: {}\nrepeats: 2\nparts: [{cases: ''}]", "repeats"),
        ("changes: {}\nrepeats: 5\nparts: []", "parts"),
        ("changes: {}\nrepeats: 5\nparts: [{case: ''}]", "parts"),
        ("repeats: 5\nparts: [{cases: ''}]", "changes"),
    ],
)
def test_a_size_with_an_error_names_its_field(text: str, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        build_report_size("version: 1", text)
    assert str(refused.value).startswith(field)
