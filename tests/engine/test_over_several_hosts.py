"""Real hosts on a network of their own work side by side, and together."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.runs.models import Trial
from tests.support.engine import (
    MEASURED,
    Engine,
    assert_measured,
    cancel_the_long_case,
    server,
    with_a_long_case,
)
from tests.support.factories import Personas, make_definition, make_project, make_run
from tests.support.fleet import ANYWHERE, TUNED, add_hosts
from tests.support.fleet_assertions import assert_all_is_well
from tests.support.journals import StepJournal, overlaps
from tests.support.leaks import files, leaks, tables, watched_commands, watched_redis
from tests.support.netns import NamespaceHost, run_hosts

pytestmark = pytest.mark.engine


@pytest.fixture
def hosts(tmp_path: Path, team: Personas) -> Iterator[list[NamespaceHost]]:
    with run_hosts(tmp_path, count=3) as running:
        add_hosts(team.alice, running)
        yield running


@pytest.fixture
def shas(tmp_path: Path, team: Personas) -> list[str]:
    project, shas = make_project(team.alice, tmp_path / "origin", [server(), server(start="#")])
    make_definition(team.alice, project, source=ANYWHERE)
    return shas


def names_in(steps: list[StepJournal]) -> set[str]:
    return {step.job for step in steps}


def shared_secrets(hosts: list[NamespaceHost]) -> dict[str, str]:
    """By job, as the plans on its hosts have it."""
    paths = [path for host in hosts for path in host.work_dir.rglob("plan.json")]
    plans = [json.loads(path.read_bytes()) for path in paths]
    return {plan["job"]: plan["secret"] for plan in plans}


@pytest.mark.slow
def test_a_run_uses_three_hosts_at_once(
    hosts: list[NamespaceHost], engine: Engine, team: Personas, shas: list[str]
) -> None:
    run = engine.finish(make_run(team.alice, shas, hosts=("a", "b", "c"), rounds=2))
    assert_measured(run)
    assert Trial.objects.filter(job__run=run, state="measured").count() == 12
    assert_all_is_well(hosts, [run])
    steps = [host.journals() for host in hosts]
    assert all(step.was_tuned for each in steps for step in each)
    for trial in Trial.objects.filter(job__run=run).select_related("job__snapshot"):
        assert trial.provenance["tuning"] == {"a": {"swappiness": TUNED}}
        assert trial.job.snapshot.facts["static"]["swappiness"] == TUNED
    assert {len(names_in(each)) for each in steps} == {1}
    assert overlaps(step for each in steps for step in each), "they did not work side by side"


@pytest.mark.slow
def test_a_host_has_one_job_at_a_time(
    hosts: list[NamespaceHost], engine: Engine, team: Personas, shas: list[str]
) -> None:
    several = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "b", "c")]
    runs = [make_run(team.alice, shas, hosts=names, rounds=1) for names in several]
    finished = [engine.finish(run) for run in runs]
    assert {run.state for run in finished} <= MEASURED
    assert_all_is_well(hosts, runs)
    assert [len(names_in(host.journals())) for host in hosts] == [3, 3, 3]


def test_a_trial_with_a_remote_load_generator_is_measured(
    hosts: list[NamespaceHost], engine: Engine, team: Personas, shas: list[str]
) -> None:
    around = [("a", "b"), ("b", "c"), ("c", "a")]
    placements = tuple({"target": f"host:{a}", "generator": f"host:{b}"} for a, b in around)
    run = make_run(team.alice, shas, hosts=(), placements=placements, rounds=1)
    with watched_commands() as argv, watched_redis() as chunks:
        run = engine.finish(run, timeout_s=180)
    assert_measured(run)
    assert_all_is_well(hosts, [run])
    assert [len(names_in(host.journals())) for host in hosts] == [2, 2, 2]
    addresses = {host.name: host.address for host in hosts}
    for job in run.jobs.all():
        roles = {placement.role: placement.host.name for placement in job.placements.all()}
        assert (roles["target"], roles["generator"]) in around
        for trial in job.trials.all():
            assert trial.host == job.host
            assert trial.provenance["tuning"] == {label: {"swappiness": TUNED} for label in "ab"}
            assert any(addresses[roles["target"]] in word for word in trial.provenance["argv"])
    secrets = shared_secrets(hosts)
    assert len(secrets) == 3
    places = {**tables(), **files(engine.logs), "argv": b"\n".join(argv), "redis": b"".join(chunks)}
    assert leaks(places, secrets) == []


@pytest.mark.slow
def test_a_cancelled_case_ends_on_both_hosts_and_the_other_continues(
    hosts: list[NamespaceHost], engine: Engine, team: Personas, tmp_path: Path
) -> None:
    project, shas = make_project(team.alice, tmp_path / "origin", [server()])
    make_definition(team.alice, project, source=with_a_long_case(ANYWHERE))
    placement = {"target": "host:a", "generator": "host:b"}
    run = make_run(team.alice, shas, hosts=(), placements=(placement,), rounds=1)
    long, short = cancel_the_long_case(engine, team.alice, run)
    run = engine.finish(run, timeout_s=60)
    assert run.state in MEASURED
    assert {(each.state, each.message) for each in long} == {("skipped", "cancelled by alice")}
    assert {each.state for each in short} == {"measured"}
    assert_all_is_well(hosts, [run])
