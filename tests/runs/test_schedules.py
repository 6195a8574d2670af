"""A schedule starts runs by itself, once each time that it is due."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError
from orchestrator.dispatch.tasks import claim_schedules
from orchestrator.runs.models import Run, Schedule
from orchestrator.runs.schedules import (
    NewSchedule,
    claim_due,
    create_schedule,
    delete_schedule,
    next_time,
    set_schedule_enabled,
)
from tests.support.factories import Personas, make_definition, make_local_host, make_project

NIGHTLY = NewSchedule(
    name="nightly",
    cron="0 3 * * *",
    benchmark="hello",
    baseline_ref="main~1",
    contender_ref="main",
    hosts=("here",),
)


@pytest.fixture
def schedule(personas: Personas, tmp_path: Path) -> Schedule:
    project, _ = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    return create_schedule(member=personas.alice, new=NIGHTLY)


def make_due(schedule: Schedule) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(next_at=utc_now() - timedelta(days=3))


def test_it_computes_the_next_time() -> None:
    after = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    assert next_time("0 3 * * *", after) == datetime(2026, 2, 1, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize("cron", ["", "every day", "61 * * * *", "* * * *", "0 0 31 2 *"])
def test_it_refuses_what_is_no_cron_expression(cron: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        next_time(cron, utc_now())
    assert caught.value.field == "cron"


def test_it_starts_one_run_for_all_the_times_missed(schedule: Schedule) -> None:
    make_due(schedule)
    claim_schedules()
    claim_schedules()
    run = Run.objects.get()
    assert (run.schedule, run.trigger) == (schedule, "schedule")
    schedule.refresh_from_db()
    assert schedule.next_at > utc_now()
    assert str(run.pk) in schedule.last_message


def test_it_is_claimed_by_one_tick_only(schedule: Schedule) -> None:
    make_due(schedule)
    now = utc_now()
    assert len(claim_due(now=now)) == 1
    assert claim_due(now=now) == []


def test_it_says_why_no_run_was_started(schedule: Schedule) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(contender_ref="gone")
    make_due(schedule)
    claim_schedules()
    schedule.refresh_from_db()
    assert "no run was started" in schedule.last_message
    assert "gone" in schedule.last_message


def test_it_rests_while_disabled(personas: Personas, schedule: Schedule) -> None:
    set_schedule_enabled(member=personas.alice, schedule_id=schedule.pk, enabled=False)
    make_due(schedule)
    claim_schedules()
    assert not Run.objects.exists()


def test_it_belongs_to_its_team(personas: Personas, schedule: Schedule) -> None:
    with pytest.raises(NotFoundError):
        delete_schedule(member=personas.mallory, schedule_id=schedule.pk)
    with pytest.raises(ConflictError, match="nightly"):
        create_schedule(member=personas.alice, new=NIGHTLY)
