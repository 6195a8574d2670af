"""Pitwall is stopped and started again while a job measures."""

from pathlib import Path

import pytest
from django.core.management import call_command

from orchestrator.fleet.models import Host
from orchestrator.runs.models import Build, HostLease, Job, Run, Trial
from tests.engine.test_main_job import processes_below
from tests.engine.test_over_ssh import add_confirmed
from tests.support.engine import Engine, assert_measured, server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.journals import read_journals
from tests.support.sshd import start_sshd

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]

#: A trial is longer than the stop of the workers, so that it is interrupted.
WITH_BUILD = DEFINITION.replace("duration_s: 0.6", "duration_s: 12").replace(
    "  start:", '  build: [["{python}", "-c", "open(\'built\', \'w\').close()"]]\n  start:'
)


@pytest.fixture
def measuring(engine: Engine, team: Personas, tmp_path: Path) -> Run:
    return start_run(engine, team, tmp_path, host=make_local_host(team.alice))


def start_run(engine: Engine, team: Personas, folder: Path, *, host: Host) -> Run:
    """Start a run, and wait until it measures the second of two trials of its first round."""
    project, shas = make_project(team.alice, folder / "origin", [server(), server(start="# same")])
    make_definition(team.alice, project, source=WITH_BUILD)
    run = make_run(team.alice, shas, rounds=2, hosts=(host.name,))
    measured = Trial.objects.filter(job__run=run, state="measured")
    engine.wait_for(measured.exists)
    return run


def stop_stack(engine: Engine, folder: Path) -> None:
    """Stop the processes in the order of `make run` after Ctrl-C (devstack/stack.py)."""
    engine.stop()
    call_command("stop_local_agents")
    engine.wait_for(lambda: not processes_below(folder))


@pytest.mark.slow
def test_a_stop_of_the_stack_costs_no_attempt_and_no_build(
    engine: Engine, measuring: Run, tmp_path: Path
) -> None:
    measured = Trial.objects.filter(job__run=measuring, state="measured")
    stop_stack(engine, tmp_path)
    before = dict(measured.values_list("pk", "ended_at"))
    stopped = Job.objects.get()
    assert (stopped.state, stopped.attempt) == ("measuring", 1)

    engine.start()
    run = engine.finish(measuring)

    assert_measured(run)
    job = Job.objects.get()
    assert (job.attempt, job.interruptions) == (1, 1)
    assert set(Trial.objects.values_list("state", "attempt")) == {("measured", 1)}
    assert before.items() <= dict(measured.values_list("pk", "ended_at")).items()
    assert measured.count() == 4
    assert not HostLease.objects.exists()
    # Both commits were built once; the step that continues found the builds.
    work_dir = engine.data_dir / "hosts" / str(Host.objects.get().pk)
    steps = read_journals(work_dir)
    done = [event for step in steps for event in step.events
            if event["event"] == "build_done" and not event["cached"]]  # fmt: skip
    assert len(done) == Build.objects.count() == 2
    assert any(each.step.endswith("-i1") for each in steps)


@pytest.mark.slow
def test_a_round_on_another_machine_goes_on_while_the_workers_are_stopped(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    (tmp_path / "ssh").mkdir()
    with start_sshd(tmp_path / "ssh") as machine:
        run = start_run(engine, team, tmp_path, host=add_confirmed(machine, team))
        stop_stack(engine, tmp_path)
        engine.wait_for(lambda: is_round_done(machine.work_dir))
        engine.start()
        run = engine.finish(run)

    assert_measured(run)
    job = Job.objects.get()
    assert (job.attempt, job.interruptions) == (1, 0)
    started = [each for step in read_journals(machine.work_dir)
               for each in step.trials("trial_started")]  # fmt: skip
    assert sorted(started) == sorted(str(pk) for pk in Trial.objects.values_list("pk", flat=True))


def is_round_done(work_dir: Path) -> bool:
    return any(event["event"] == "round_done" for step in read_journals(work_dir)
               for event in step.events)  # fmt: skip
