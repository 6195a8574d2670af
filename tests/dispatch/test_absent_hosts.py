"""A host that is away: nothing fails, no attempt is lost, and no result is measured twice."""

import contextlib
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from orchestrator.core.errors import InvalidRequestError, UnreachableError
from orchestrator.dispatch import engine, probes
from orchestrator.dispatch.plan import MAX_ATTEMPTS, MAX_POLL_FAILURES
from orchestrator.dispatch.probes import PROBES_AT_ONCE, probe_host
from orchestrator.fleet.absence import (
    compute_least_pause_s,
    compute_probe_pause_s,
    load_least_pause_s,
)
from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.models import Host, HostState
from orchestrator.fleet.services import record_host_error
from orchestrator.runs import leasing
from orchestrator.runs.absent_hosts import load_due_probe_ids
from orchestrator.runs.models import HostLease, Job, Trial
from orchestrator.runs.states import JobState
from orchestrator.runs.wait_reasons import describe_wait
from orchestrator.transport.wake_on_lan import build_magic_packet
from tests.dispatch.support import make_job_over_ssh
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.journals import read_journals
from tests.support.sshd import SshServer


@pytest.fixture
def job(transactional_db: None, machine: SshServer, tmp_path: Path, data_dir: Path) -> Job:
    """Two rounds of two trials, on a host over SSH."""
    return make_job_over_ssh(machine, tmp_path, rounds=2)


def advance(job: Job) -> Job:
    """Advance the job now, whenever its next step is due."""
    Job.objects.filter(pk=job.pk).update(poll_at=Now())
    engine.advance(job.pk)
    job.refresh_from_db()
    return job


def advance_until(job: Job, reached: Callable[[Job], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached(advance(job)):
        assert time.monotonic() < deadline, (job.state, job.phase, job.message)
        time.sleep(0.2)


def wait_for(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def probe_now(host: Host) -> bool:
    Host.objects.filter(pk=host.pk).update(probe_at=Now())
    assert load_due_probe_ids() == [host.pk]
    return probe_host(host.pk)


def count_ends(machine: SshServer, round_: int) -> int:
    """Return how many steps of a round ended on the host."""
    steps = [step for step in read_journals(machine.work_dir) if f"-r{round_}" in step.step]
    return sum(event["event"] == "round_done" for step in steps for event in step.events)


def test_a_job_waits_for_its_host_before_and_during_its_rounds(
    job: Job, machine: SshServer
) -> None:
    host = Host.objects.get()
    machine.stop()

    # Before the job has started.
    assert leasing.lease_queued_jobs() == [job.pk]
    advance(job)
    for _ in range(MAX_POLL_FAILURES + 2):
        assert leasing.lease_queued_jobs() == []
        assert not probe_now(host)
    job.refresh_from_db()
    host.refresh_from_db()
    assert (job.state, job.attempt, job.interruptions) == (JobState.QUEUED, 1, 0)
    assert (host.state, host.failed_probes) == (HostState.UNREACHABLE, MAX_POLL_FAILURES + 2)
    assert host.unreachable_since < host.probe_at
    assert "bench-1 has not answered since 20" in describe_wait(job)
    assert not HostLease.objects.exists()
    machine.start()
    assert probe_now(host)
    assert leasing.lease_queued_jobs() == [job.pk]

    # In the middle of the first round: the agent continues.
    advance_until(job, lambda job: job.step_started and job.phase == "measuring")
    machine.stop()
    for _ in range(MAX_POLL_FAILURES + 2):
        advance(job)
        assert (job.state, job.attempt, job.step_started) == (JobState.MEASURING, 1, True)
    assert "Pitwall waits for it" in job.message
    machine.start()
    advance_until(job, lambda job: job.round == 2 and job.phase == "measuring")
    assert job.interruptions == 0

    # For longer than the agent continues: the job returns to the queue, and its results are kept.
    wait_for(lambda: count_ends(machine, 2) == 1)
    machine.stop()
    advance(job)
    Host.objects.update(unreachable_since=Now() - timedelta(hours=2))
    advance(job)
    assert (job.state, job.attempt, job.interruptions) == (JobState.QUEUED, 1, 1)
    # Another attempt is lost in between.
    Job.objects.filter(pk=job.pk).update(attempt=3)
    machine.start()
    assert probe_now(host)
    assert leasing.lease_queued_jobs() == [job.pk]
    advance(job)
    assert job.state in {JobState.FINISHED, JobState.NO_DATA}, job.message
    assert set(Trial.objects.values_list("state", flat=True)) == {"measured"}
    assert count_ends(machine, 2) == 1


def test_one_worker_probes_a_host_that_a_queued_job_could_use(
    personas: Personas, tmp_path: Path, data_dir: Path
) -> None:
    project, shas = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project)
    for name in ("one", "two"):
        make_local_host(personas.alice, name)
    for host in Host.objects.all():
        record_host_error(host=host, error=UnreachableError("asleep"))
    assert load_due_probe_ids() == []  # nobody waits for them
    make_run(personas.alice, shas[:2], rounds=1, hosts=("two",))
    two = Host.objects.get(name="two")
    assert load_due_probe_ids() == [two.pk]
    assert probe_host(two.pk)
    assert not probe_host(two.pk)
    two.refresh_from_db()
    assert (two.state, two.failed_probes, two.unreachable_since) == (HostState.READY, 0, None)
    record_host_error(host=two, error=UnreachableError("asleep"))
    Host.objects.update(tags=["fast"])
    make_run(personas.alice, shas[:2], rounds=1, hosts=("tag:fast",))
    assert set(load_due_probe_ids()) == set(Host.objects.values_list("pk", flat=True))


def test_probes_leave_most_threads_to_jobs(personas: Personas, data_dir: Path) -> None:
    host = make_local_host(personas.alice)
    record_host_error(host=host, error=UnreachableError("asleep"))
    with contextlib.ExitStack() as others:
        for _ in range(PROBES_AT_ONCE):
            others.enter_context(probes._BUDGET)
        assert not probe_host(host.pk)
    assert probe_host(host.pk)


def test_many_absent_hosts_are_tried_less_often(personas: Personas) -> None:
    """Of 1,000 hosts behind one link that is down, each try costs CPU time."""
    host = make_local_host(personas.alice)
    others = [
        Host(
            team=personas.alice.team,
            name=f"absent-{number}",
            profile=host.profile,
            state=HostState.UNREACHABLE,
        )
        for number in range(300)
    ]
    assert load_least_pause_s(host) == 0.0
    Host.objects.bulk_create(others)
    assert load_least_pause_s(host) == 30.0
    assert load_least_pause_s(make_local_host(personas.mallory)) == 0.0, "of another team"
    assert compute_least_pause_s(1_000_000) == 60.0


def test_probes_become_rare() -> None:
    assert [compute_probe_pause_s(n) for n in (1, 2, 5, 6, 10_000)] == [10, 20, 160, 300, 300]


def test_a_probe_sends_the_packet_that_wakes_the_host(
    personas: Personas, settings: Any, data_dir: Path
) -> None:
    host = make_local_host(personas.alice)
    with pytest.raises(InvalidRequestError, match="MAC address"):
        set_host_settings(member=personas.alice, host_id=host.pk, mac_address="01:00:5e:00:00:01")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10)
        settings.WAKE_ADDRESS = f"127.0.0.1:{receiver.getsockname()[1]}"
        record_host_error(host=host, error=UnreachableError("asleep"))
        set_host_settings(member=personas.alice, host_id=host.pk, mac_address="02-AB-cd-00-00-01")
        assert probe_host(host.pk)
        assert receiver.recv(200) == build_magic_packet("02:ab:cd:00:00:01")
    settings.WAKE_ADDRESS = "0.0.0.0:0"
    record_host_error(host=host, error=UnreachableError("asleep"))
    assert probe_host(host.pk)  # no packet, and the probe all the same


def test_a_host_that_leaves_again_and_again_costs_attempts_in_the_end(
    job: Job, machine: SshServer
) -> None:
    leasing.lease_queued_jobs()
    Job.objects.filter(pk=job.pk).update(
        interruptions=20, attempt=MAX_ATTEMPTS, state=JobState.MEASURING, step_started=True, round=1
    )
    machine.stop()
    Host.objects.update(unreachable_since=Now() - timedelta(hours=2))
    advance(job)
    assert job.state == JobState.FAILED
    assert f"failed after {MAX_ATTEMPTS} attempts" in job.message
