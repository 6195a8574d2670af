"""Jobs wait while somebody else uses the machine of their host, and lose nothing."""

import os
from pathlib import Path

import pytest

from agents.hostagent.errors import Busy
from agents.hostagent.machine_lock import take_machine_lock
from agents.hostagent.reservation import end_reservation, write_reservation
from orchestrator.fleet.connect import get_local_work_dir
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Job
from orchestrator.runs.wait_reasons import describe_wait
from tests.support.engine import assert_measured, running_engine, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


def hold_machine() -> int:
    """Hold the lock of this machine. Another test may have it for a while."""
    held: list[int] = []

    def take() -> bool:
        try:
            held.append(take_machine_lock() or 0)
        except Busy:
            return False
        return True

    wait_until(take, "the lock of this machine is not released")
    return held[0]


def test_a_job_waits_for_the_machine_and_for_its_owner(team: Personas, tmp_path: Path) -> None:
    with running_engine(tmp_path, PITWALL_ONE_HOST_PER_MACHINE="1") as engine:
        host = make_local_host(team.alice)
        project, shas = make_project(
            team.alice, tmp_path / "origin", [server(), server(start="# same")]
        )
        make_definition(team.alice, project)
        lock = hold_machine()
        run = make_run(team.alice, shas[:1], hosts=(host.name,))
        job = run.jobs.get()
        engine.wait_for(lambda: "another job of Pitwall" in _read_message(job))
        assert (job.state, job.attempt) == ("queued", 1)
        assert not Host.objects.get().machine_id, "the host was not used"

        work_dir = get_local_work_dir(host)
        write_reservation(work_dir, "2h", "debugging")
        os.close(lock)
        Job.objects.filter(pk=job.pk).update(not_before=None)
        engine.wait_for(lambda: "is reserved by" in _read_message(job))
        assert (job.state, job.attempt) == ("queued", 1)
        assert describe_wait(job).endswith(" UTC: debugging")

        end_reservation(work_dir)
        Host.objects.update(reservation_seen_at="2000-01-01T00:00Z")
        assert_measured(engine.finish(run))
        job.refresh_from_db()
        assert job.attempt == 1
        host.refresh_from_db()
        assert host.reserved_until is None
        assert host.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _read_message(job: Job) -> str:
    job.refresh_from_db()
    return job.message
