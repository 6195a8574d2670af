"""A job that was at work when the backup was made goes on after a restore; nothing is doubled."""

from collections import Counter
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from orchestrator.core.clock import utc_now
from orchestrator.fleet.connect import get_local_work_dir
from orchestrator.measurements.readings import load_values
from orchestrator.results.models import Point
from orchestrator.runs.models import HostLease, Job, Run, Trial
from tests.support.engine import Engine, assert_measured, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.journals import read_journals

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_a_restored_job_continues_at_the_state_of_the_host(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    """The host went on alone meanwhile, and a run that came after the backup is forgotten."""
    alice = team.alice
    project, shas = make_project(alice, tmp_path / "origin", [server(), server(start="#")])
    make_definition(alice, project)
    host = make_local_host(alice)
    run = make_run(alice, shas, rounds=2)
    engine.wait_for(lambda: Trial.objects.filter(state="measured").exists())
    backup = tmp_path / "pitwall.zip"
    call_command("backup", backup, quiet=True, stdout=StringIO())
    at_work = Job.objects.get()
    assert at_work.state == "measuring"
    later = make_run(alice, shas, rounds=1)
    engine.kill_worker()
    engine.wait_for(_end_other_sessions)
    call_command("restore", backup, replace=True, quiet=True, stdout=StringIO())
    assert not Run.objects.filter(pk=later.pk).exists()
    assert HostLease.objects.get().job_id == at_work.pk
    # A real restore comes later: the worker that held the claim during the backup is gone.
    Job.objects.filter(claim__isnull=False).update(claimed_until=utc_now() - timedelta(hours=1))
    engine.start()
    run = engine.finish(run)
    assert_measured(run)
    trials = list(run.jobs.get().trials.all())
    assert [trial.state for trial in trials] == ["measured"] * 4
    assert load_values([trial.pk for trial in trials]).keys() == {trial.pk for trial in trials}
    points = Point.objects.filter(series__metric__key="requests.rate")
    assert sum(point.trials + point.invalid for point in points) == len(trials)
    counts = Counter(
        trial
        for step in read_journals(get_local_work_dir(host))
        for trial in set(step.trials("trial_done"))
    )
    assert counts == {str(trial.pk): 1 for trial in trials}, "the host measured each of them once"
    assert not HostLease.objects.exists()


def _end_other_sessions() -> bool:
    """End the sessions of the killed worker and of other tests; return whether there were none.

    PostgreSQL notices the end of a killed client only when it reads from it again. A thread of the
    live server keeps its session as long as its browser keeps the connection.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, application_name, backend_start, state, query, pg_terminate_backend(pid)"
            " FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        sessions = cursor.fetchall()
    # pytest shows them if they do not end.
    print(*sessions, sep="\n")
    return not sessions
