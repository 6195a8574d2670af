"""A run is planned whole when it is asked for, or refused with the field that is wrong."""

import pytest
from django.db import IntegrityError, connection, transaction

from orchestrator.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.fleet.models import Host
from orchestrator.runs.cancelling import cancel_run
from orchestrator.runs.models import HostLease, Job, Run, Trial
from orchestrator.runs.selectors import load_progress, load_run
from orchestrator.runs.services import (
    RunRequest,
    find_run_by_key,
    plan_run,
    start_run_once,
)
from tests.support.factories import (
    Personas,
    finish_run,
    make_local_host,
    make_run,
)
from tests.support.world import World


@pytest.fixture
def shas(world: World) -> list[str]:
    return world.shas


def request_for(shas: list[str], **changes: object) -> RunRequest:
    values = {"benchmark": "hello", "baseline": shas[0], "contenders": (shas[1],)}
    return RunRequest(**{**values, "hosts": ("here",), **changes})  # type: ignore[arg-type]


def test_every_trial_is_planned_in_blocks(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, shas, rounds=4)
    trials = list(Trial.objects.filter(job__run=run).order_by("position"))
    assert len(trials) == 12
    blocks = [trials[start : start + 3] for start in range(0, 12, 3)]
    assert all(len({trial.variant_id for trial in block}) == 3 for block in blocks)
    assert [block[0].round for block in blocks] == [1, 2, 3, 4]
    orders = {tuple(trial.variant.position for trial in block) for block in blocks}
    assert len(orders) > 1


def test_the_cost_is_reported_before_anything_is_queued(
    personas: Personas, shas: list[str]
) -> None:
    plan = plan_run(member=personas.alice, request=request_for(shas, rounds=6))
    assert (plan.case_count, plan.trial_count, plan.rounds) == (1, 12, 6)
    # 0.2 s of warm-up, 0.6 s of load, 1 s of starting and stopping, 12 times.
    assert plan.job_s == pytest.approx(21.6)
    assert not Run.objects.exists()


def test_too_few_rounds_give_a_warning(personas: Personas, shas: list[str]) -> None:
    plan = plan_run(member=personas.alice, request=request_for(shas, rounds=3))
    assert "no verdict" in plan.warnings[0]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"baseline": "nowhere"}, "baseline"),
        ({"contenders": ("nowhere",)}, "contenders"),
        ({"contenders": (), "baseline": ""}, "contenders"),
        ({"contenders": ("main~2",)}, "contenders"),
        ({"hosts": ()}, "hosts"),
        ({"hosts": ("there",)}, "hosts"),
        ({"rounds": 0}, "rounds"),
        ({"rounds": 101}, "rounds"),
    ],
)
def test_an_impossible_run_is_refused(
    personas: Personas, shas: list[str], changes: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        plan_run(member=personas.alice, request=request_for(shas, **changes))
    assert caught.value.field == field


def test_a_viewer_is_refused_and_strangers_find_nothing(
    personas: Personas, shas: list[str]
) -> None:
    run = make_run(personas.alice, shas)
    with pytest.raises(PermissionRefusedError, match="viewer"):
        make_run(personas.bob, shas)
    with pytest.raises(PermissionRefusedError):
        cancel_run(member=personas.bob, run_id=run.pk)
    with pytest.raises(NotFoundError):
        load_run(personas.mallory, run.pk)
    with pytest.raises(NotFoundError):
        plan_run(member=personas.mallory, request=request_for(shas))


def test_one_key_creates_one_run(personas: Personas, shas: list[str]) -> None:
    request = request_for(shas)
    first, new = start_run_once(member=personas.alice, request=request, key="k1")
    again, new_again = start_run_once(member=personas.alice, request=request, key="k1")
    assert (new, new_again) == (True, False)
    assert first.run == again.run
    assert (
        find_run_by_key(member=personas.alice, client_request=str(request), key="k1") == first.run
    )
    assert Run.objects.count() == 1
    with pytest.raises(ConflictError, match="another request"):
        start_run_once(member=personas.alice, request=request_for(shas, rounds=9), key="k1")


def test_a_cancelled_queued_run_ends_immediately(personas: Personas, shas: list[str]) -> None:
    run = cancel_run(member=personas.alice, run_id=make_run(personas.alice, shas).pk)
    assert run.state == "cancelled"
    assert set(Trial.objects.values_list("state", flat=True)) == {"skipped"}
    with pytest.raises(ConflictError, match="already ended"):
        cancel_run(member=personas.alice, run_id=run.pk)


def test_a_run_whose_jobs_have_ended_is_not_cancelled(personas: Personas, shas: list[str]) -> None:
    """Its state was read as running, and its last job ended before the jobs were locked."""
    run = make_run(personas.alice, shas)
    run.jobs.update(state="finished")
    with pytest.raises(ConflictError, match="already ended"):
        cancel_run(member=personas.alice, run_id=run.pk)
    run.refresh_from_db()
    assert (run.state, run.cancel_requested_at) == ("queued", None)


def test_cancelling_skips_waiting_jobs_while_another_still_ends(
    personas: Personas, shas: list[str]
) -> None:
    make_local_host(personas.alice, "there")
    run = make_run(personas.alice, shas, hosts=("here", "there"))
    active, queued = run.jobs.order_by("host__name")
    Job.objects.filter(pk=active.pk).update(state="measuring")
    assert cancel_run(member=personas.alice, run_id=run.pk).state != "cancelled"
    assert set(queued.trials.values_list("state", flat=True)) == {"skipped"}
    assert set(active.trials.values_list("state", flat=True)) == {"planned"}


def test_progress_of_a_run_is_counted(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, shas)
    Trial.objects.filter(job__run=run, round=1).update(state="measured", validity="valid")
    progress = load_progress(run)
    assert (progress.trials_done, progress.trials_total) == (3, 15)
    assert progress.seconds_left == pytest.approx(12 * 1.8)


def test_the_database_refuses_invalid_states(personas: Personas, shas: list[str]) -> None:
    run = make_run(personas.alice, shas)
    job, trial = run.jobs.get(), Trial.objects.filter(job__run=run).first()
    assert trial is not None
    host = Host.objects.get()
    HostLease.objects.create(host=host, job=job)
    wrong = [
        lambda: Run.objects.filter(pk=run.pk).update(state="odd"),
        lambda: Run.objects.filter(pk=run.pk).update(rounds=0),
        lambda: run.jobs.update(state="odd"),
        lambda: Trial.objects.filter(pk=trial.pk).update(state="measured"),
        lambda: Trial.objects.filter(pk=trial.pk).update(validity="fine"),
        lambda: HostLease.objects.create(host=host, job=job),
        lambda: Host.objects.filter(pk=host.pk).update(transport="ssh"),
        lambda: Host.objects.filter(pk=host.pk).update(port=0),
    ]
    for write in wrong:
        with pytest.raises(IntegrityError), transaction.atomic():
            write()


def test_the_database_refuses_to_change_what_was_measured(
    personas: Personas, shas: list[str]
) -> None:
    finish_run(make_run(personas.alice, shas), [1000, 990, 800])
    for table in ("results_reading", "results_histogram", "results_artifact"):
        with (
            pytest.raises(IntegrityError, match="never changed"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(f"UPDATE {table} SET id = id")
