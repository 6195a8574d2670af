"""The values of a contest are measured in one job, next to each other."""

from collections import defaultdict
from itertools import groupby
from pathlib import Path

import pytest

from orchestrator.benchmarks.models import Project
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.models import Job, Trial
from orchestrator.runs.plans import JOB_S, RunRequest, plan_run
from orchestrator.runs.rerun import request_again
from orchestrator.runs.services import create_run
from tests.support.factories import Personas, make_definition, make_local_host, make_project

#: The contest axis is the first, so that neighbours differ in the other one.
CONTEST = """\
version: 1
title: Servers
subject: {start: ["{python}", server.py, "{server}", --port, "{port}"]}
load: {connections: "{connections}", duration_s: 20, warmup_s: 0}
matrix:
  server: [quick, slow, old]
  connections: [4, 8, 16]
contest: server
rounds: 5
cooldown_s: 0
"""


@pytest.fixture
def shas(personas: Personas, tmp_path: Path) -> list[str]:
    project, commits = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project, source=CONTEST)
    make_local_host(personas.alice)
    return commits


def _request(shas: list[str], **changes: object) -> RunRequest:
    values = {"benchmark": "hello", "baseline": shas[0], "contenders": (), "hosts": ("here",)}
    return RunRequest(**{**values, **changes})  # type: ignore[arg-type]


def test_each_contest_is_in_one_job_and_in_each_of_its_rounds(
    personas: Personas, shas: list[str]
) -> None:
    run = create_run(member=personas.alice, request=_request(shas))
    jobs: dict[object, list[Trial]] = defaultdict(list)
    for trial in Trial.objects.filter(job__run=run).select_related("case").order_by("position"):
        jobs[trial.job_id].append(trial)
    assert len(jobs) > 1
    measured = set()
    for trials in jobs.values():
        for _, in_round in groupby(trials, key=lambda each: each.round):
            for connections, block in groupby(
                in_round, key=lambda each: each.case.parameters["connections"]
            ):
                assert {each.case.parameters["server"] for each in block} == {
                    "quick", "slow", "old",
                }  # fmt: skip
                measured.add(connections)
    assert measured == {4, 8, 16}


def test_the_estimate_is_the_time_of_the_planned_trials(
    personas: Personas, shas: list[str]
) -> None:
    plan = plan_run(member=personas.alice, request=_request(shas))
    run = create_run(member=personas.alice, request=_request(shas))
    expected = [job.expected_s for job in Job.objects.filter(run=run)]
    assert len(expected) == plan.job_count == 3
    assert sum(expected) == pytest.approx(plan.job_s)
    # A contest is not split, even if two would fit better.
    assert max(expected) < JOB_S < 2 * min(expected)
    assert sorted(case for part in plan.parts for case in part) == list(range(9))


def test_a_part_of_the_contest_is_measured_together_as_well(
    personas: Personas, shas: list[str]
) -> None:
    chosen = _request(shas, cases='server != "old"', pairwise=True)
    plan = plan_run(member=personas.alice, request=chosen)
    for part in plan.parts:
        values = defaultdict(set)
        for at in part:
            parameters = plan.cases[at].parameters
            values[parameters["connections"]].add(parameters["server"])
        assert all(each == {"quick", "slow"} for each in values.values())
    assert plan.case_count == 6


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"until": "ranked", "places": 0}, "places", "expected 1 to 20 places"),
        ({"until": "rounds", "places": 2}, "places", "omit places"),
        ({"until": "compared"}, "until", "add baseline: {server: ...} to the definition"),
        ({"until": "ranked", "cases": 'server == "old"'}, "cases", "no contest has two"),
        ({"until": "decided"}, "until", "nothing to decide"),
    ],
)
def test_a_run_that_its_contest_cannot_end_is_refused(
    personas: Personas, shas: list[str], changes: dict[str, object], field: str, says: str
) -> None:
    with pytest.raises(InvalidRequestError, match=says) as caught:
        plan_run(member=personas.alice, request=_request(shas, **changes))
    assert caught.value.field == field


def test_contests_are_decided_at_one_commit(personas: Personas, shas: list[str]) -> None:
    two = _request(shas, contenders=(shas[1],), until="ranked")
    with pytest.raises(InvalidRequestError, match="omit the contender"):
        plan_run(member=personas.alice, request=two)
    run = create_run(member=personas.alice, request=_request(shas, until="ranked"))
    assert (run.rounds, run.until, run.places) == (20, "ranked", 3)
    assert request_again(run).places == 3


def test_the_baseline_of_a_contest_must_be_measured(personas: Personas, shas: list[str]) -> None:
    project = Project.objects.get()
    make_definition(personas.alice, project, source=CONTEST + "baseline: {server: old}\n")
    with pytest.raises(InvalidRequestError, match="leave out the baseline old") as caught:
        plan_run(
            member=personas.alice,
            request=_request(shas, until="compared", cases='server != "old"'),
        )
    assert caught.value.field == "cases"
    make_definition(personas.alice, project, source=CONTEST.replace("contest: server\n", ""))
    with pytest.raises(InvalidRequestError, match="add one to the definition"):
        plan_run(member=personas.alice, request=_request(shas, until="ranked"))
