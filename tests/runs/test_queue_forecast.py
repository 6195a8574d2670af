"""The queue as members see it: order, reasons, and starts that are expected or unknown."""

from datetime import timedelta

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.runs import leasing
from orchestrator.runs.models import HostLease, Job, Run
from orchestrator.runs.queue_forecast import load_queue, load_queue_entries
from tests.support.factories import make_local_host, make_run
from tests.support.queues import fill_queue, queue_job
from tests.support.world import World

pytestmark = pytest.mark.django_db


def test_the_queue_has_positions_reasons_and_expected_starts(
    world: World,
) -> None:
    jobs = fill_queue(world)
    now = utc_now()
    queue = load_queue_entries(world.alice, load_queue(world.alice))
    assert [entry.job.pk for entry in queue] == [job.pk for job in jobs]
    assert [entry.place.position for entry in queue] == [1, 2, 3, 4]
    starts = [entry.place.starts_at for entry in queue]
    expected = [600, 660, None, 3 * 3600]
    for start, seconds in zip(starts, expected, strict=True):
        if seconds is None:
            assert start is None
        else:
            assert (start - now).total_seconds() == pytest.approx(seconds, abs=20)
    reasons = [entry.waiting for entry in queue]
    assert reasons[0] == reasons[1] == "here is busy with another job"
    assert reasons[2].startswith("laptop has not answered since 20")
    assert reasons[3].startswith("tried again in")
    assert queue[2].place.unknown == "no host that it could use answers and accepts jobs"


def test_a_job_on_two_hosts_starts_when_both_are_free_and_open(world: World) -> None:
    make_local_host(world.alice, "there")
    Host.objects.update(data_address="127.0.0.1")
    day = (utc_now() + timedelta(days=2)).strftime("%a").lower()
    Host.objects.filter(name="there").update(open_hours=day)
    placement = ({"target": "here", "generator": "there"},)
    run = make_run(world.alice, world.shas[:2], rounds=1, hosts=(), placements=placement)
    (place,) = load_queue(world.alice)
    assert place.starts_at is not None
    assert place.starts_at.date() == (utc_now() + timedelta(days=2)).date()
    Host.objects.filter(name="there").update(open_hours=f"{day} 10:00-10:01")
    run.jobs.update(expected_s=61)
    (place,) = load_queue(world.alice)
    assert place.starts_at is None
    assert place.unknown == "its hosts are never open long enough for it"


def test_a_host_in_maintenance_does_not_starve_its_partner(world: World) -> None:
    """A job that needs both has waited for hours; one with the lowest priority gets the host."""
    make_local_host(world.alice, "there")
    Host.objects.update(data_address="127.0.0.1")
    placement = ({"target": "here", "generator": "there"},)
    both = make_run(world.alice, world.shas[:2], rounds=1, hosts=(), placements=placement)
    both.jobs.update(created_at=utc_now() - timedelta(hours=5))
    small = queue_job(world, "here", priority="background")
    Host.objects.filter(name="there").update(state="maintenance")
    assert leasing.lease_queued_jobs() == [small.pk]
    HostLease.objects.all().delete()
    Run.objects.filter(pk=small.run_id).update(state="finished")
    Job.objects.filter(pk=small.pk).update(state="finished")
    # While the other host is merely leased, this one is kept for the job.
    Host.objects.filter(name="there").update(state="ready")
    HostLease.objects.create(host=Host.objects.get(name="there"), job=small)
    long = queue_job(world, "here", priority="high", expected_s=1000)
    Job.objects.filter(pk=both.jobs.get().pk).update(created_at=utc_now() - timedelta(hours=9))
    Run.objects.filter(pk=both.pk).update(priority=1)
    assert leasing.lease_queued_jobs() == []
    Job.objects.filter(pk=long.pk).update(expected_s=10)
    assert leasing.lease_queued_jobs() == [long.pk]  # it ends before the other host is free


def test_jobs_that_do_not_fit_hide_no_job_that_does(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leasing, "JOBS_PER_PAGE", 2)
    today = utc_now()
    day = today.strftime("%a").lower()
    Host.objects.filter(name="here").update(open_hours=f"{day}", tags=["fast"])
    for _ in range(5):
        long = queue_job(world, "here", expected_s=2 * 86400)
    # Each of these avoids the only host of its tag, which the query does not know.
    for _ in range(5):
        avoiding = queue_job(world, "tag:fast")
        avoiding.placements.update(avoid=[Host.objects.get(name="here").pk])
    last = queue_job(world, "here", priority="low", expected_s=0.5)
    assert leasing.lease_queued_jobs() == [last.pk]
    assert long.run.state == "queued"
