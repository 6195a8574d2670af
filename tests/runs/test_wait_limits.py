"""Jobs that wait too long end with a clear message; the others wait."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F
from django.db.models.functions import Now

from orchestrator.core.errors import InvalidRequestError, UnreachableError
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_host_error
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.rerun import request_again
from orchestrator.runs.schedules import build_request
from orchestrator.runs.wait_limits import DEFAULT_WAIT_LIMIT_S, fail_overdue_jobs, get_wait_limit_s
from tests.support.factories import make_nightly_schedule, make_run
from tests.support.world import World

pytestmark = pytest.mark.django_db


def test_a_job_waits_for_a_weekend_and_ends_after_its_limit(world: World, tmp_path: Path) -> None:
    record_host_error(host=Host.objects.get(), error=UnreachableError("no route to it"))
    week = make_run(world.alice, world.shas[:2], rounds=1)
    short = make_run(world.alice, world.shas[:2], rounds=1, wait_limit_s=3600)
    assert get_wait_limit_s(week) == DEFAULT_WAIT_LIMIT_S
    assert get_wait_limit_s(short) == 3600
    Run.objects.update(
        created_at=Now() - timedelta(days=3), waits_until=F("waits_until") - timedelta(days=3)
    )
    assert fail_overdue_jobs() == 1
    assert fail_overdue_jobs() == 0
    short.refresh_from_db()
    week.refresh_from_db()
    assert (week.state, short.state) == ("queued", "failed")
    assert "the wait limit of the run, 1 h 00 min, has passed: here has not" in short.message
    assert "no route to it" in short.message
    states = Trial.objects.filter(job__run=short).values_list("state", flat=True)
    assert set(states) == {"skipped"}


def test_the_limit_is_kept_for_further_runs(world: World) -> None:
    run = make_run(world.alice, world.shas[:2], rounds=1, wait_limit_s=7200)
    assert request_again(run).wait_limit_s == 7200
    schedule = make_nightly_schedule(world.alice)
    assert build_request(schedule).wait_limit_s is None
    schedule.wait_limit_s = 900.0
    assert build_request(schedule).wait_limit_s == 900.0


@pytest.mark.parametrize("seconds", [0, 59.9, 91 * 86400, float("nan")])
def test_a_limit_that_makes_no_sense_is_refused(world: World, seconds: float) -> None:
    with pytest.raises(InvalidRequestError, match="expected 60 to") as caught:
        make_run(world.alice, world.shas[:2], wait_limit_s=seconds)
    assert caught.value.field == "wait_limit_s"
