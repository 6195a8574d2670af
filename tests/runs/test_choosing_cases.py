"""A run measures the cases that were chosen, of two commits or of one alone."""

from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.models import Trial
from orchestrator.runs.plans import RunRequest, plan_run
from orchestrator.runs.services import create_run
from tests.support.factories import Personas, make_definition, make_local_host, make_project

MATRIX = dedent(
    """\
    version: 1
    title: Many
    subject:
      start: ["{python}", server.py, --port, "{port}"]
    load:
      connections: "{connections}"
      duration_s: 2
      warmup_s: 0
    matrix:
      system: [quick, old]
      connections: [1, 2, 3]
      size: [s, l]
    options:
      system:
        quick: {labels: {language: rust}}
        old: {labels: {language: c}, unsupported: nobody has it any more}
    rounds: 2
    cooldown_s: 0
    """
)


@pytest.fixture
def shas(personas: Personas, tmp_path: Path) -> list[str]:
    project, commits = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project, source=MATRIX)
    make_local_host(personas.alice)
    return commits


def _request(shas: list[str], **changes: object) -> RunRequest:
    values = {"benchmark": "hello", "baseline": shas[0], "contenders": (), "hosts": ("here",)}
    return RunRequest(**{**values, **changes})  # type: ignore[arg-type]


def test_selected_cases_of_one_commit_are_measured(personas: Personas, shas: list[str]) -> None:
    chosen = 'language == "rust" and connections in (1, 3) and size == "s"'
    run = create_run(member=personas.alice, request=_request(shas, cases=f" {chosen} "))
    trials = Trial.objects.filter(job__run=run).select_related("case")

    assert {trial.case.label for trial in trials} == {
        "system quick, connections 1, size s", "system quick, connections 3, size s",
    }  # fmt: skip
    assert trials.count() == 4
    assert run.definition.benchmark.cases.count() == 2
    assert (run.cases, run.pairwise) == (chosen, False)
    assert [variant.commit.sha for variant in run.variants.all()] == [shas[0]]


def test_a_plan_reports_selected_cases_and_duration(personas: Personas, shas: list[str]) -> None:
    whole = plan_run(member=personas.alice, request=_request(shas))
    part = plan_run(member=personas.alice, request=_request(shas, cases="connections > 1"))

    assert (whole.case_count, whole.cases_in_all) == (12, 12)
    assert (part.case_count, part.cases_in_all) == (8, 12)
    # What cannot be measured takes no time: 4 cases of 3 s, 2 rounds, one commit.
    assert part.job_s == pytest.approx(24)
    assert part.alone
    assert part.warnings == ()


def test_pairwise_selection_covers_each_pair_with_fewer_cases(
    personas: Personas, shas: list[str]
) -> None:
    plan = plan_run(member=personas.alice, request=_request(shas, pairwise=True, cases=""))
    measured = [each for each in plan.cases if each.parameters["system"] == "quick"]
    cells = {(each.parameters["connections"], each.parameters["size"]) for each in measured}

    assert cells == {(number, size) for number in (1, 2, 3) for size in "sl"}
    three = _request(shas, pairwise=True, cases="connections < 3")
    assert plan_run(member=personas.alice, request=three).case_count == 8


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("connections > 9", "it matches no case"),
        ("speed == 1", "there is no axis or label speed"),
        ("connections ==", "cannot be parsed"),
    ],
)
def test_an_invalid_expression_is_refused_at_its_field(
    personas: Personas, shas: list[str], expression: str, words: str
) -> None:
    with pytest.raises(InvalidRequestError, match=words) as caught:
        plan_run(member=personas.alice, request=_request(shas, cases=expression))
    assert caught.value.field == "cases"


def test_at_least_one_commit_is_required(personas: Personas, shas: list[str]) -> None:
    with pytest.raises(InvalidRequestError, match="name a contender, or a baseline") as caught:
        plan_run(member=personas.alice, request=_request(shas, baseline=""))
    assert caught.value.field == "contenders"


def test_axes_keep_the_order_in_which_they_were_written(
    personas: Personas, shas: list[str]
) -> None:
    plan = plan_run(member=personas.alice, request=_request(shas))
    assert plan.cases[0].label == "system quick, connections 1, size s"
