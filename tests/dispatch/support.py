"""Jobs as the engine has them: on two hosts when it plans a round, and on a host over SSH."""

import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.dispatch import engine
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from orchestrator.runs import claims, leasing
from orchestrator.runs.models import Job
from orchestrator.runs.states import JOB_ENDED
from tests.engine.test_over_ssh import add_confirmed
from tests.support.engine import server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_local_host,
    make_personas,
    make_project,
    make_run,
)
from tests.support.programs import tool
from tests.support.sshd import SshServer

THEIR_OHA = {"path": "/usr/bin/oha", "version": "1.16.0", "sha256": "ab", "features": ["http3"]}


def facts(**tools: Any) -> dict[str, Any]:
    """Of a host such as this machine."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "threads": 2,
        "python_path": "/usr/bin/python3",
        "tools": tools,
    }


def leased(
    personas: Personas, folder: Path, source: str, rounds: int = 1, commits: int = 2, **fields: Any
) -> Job:
    """A job that serves on the host `one` and puts its load from `two`, with its turn taken."""
    project, shas = make_project(personas.alice, folder / "origin")
    make_definition(personas.alice, project, source=source)
    for name, address in (("one", "10.9.0.1"), ("two", "two.example.org")):
        host = make_local_host(personas.alice, name)
        Host.objects.filter(pk=host.pk).update(data_address=address)
        record_snapshot(host=host, facts=facts(oha=THEIR_OHA))
    placement = {"target": "host:one", "generator": "host:two"}
    request = {"rounds": rounds, "placements": (placement,), "hosts": (), **fields}
    run = make_run(personas.alice, shas[:commits], **request)
    leasing.lease_queued_jobs()
    job = claims.claim_job(run.jobs.get().pk)
    assert job is not None
    claims.update_job(job, round=1)
    return job


def make_job_over_ssh(
    machine: SshServer,
    folder: Path,
    *,
    rounds: int,
    source: str = DEFINITION,
    commits: Sequence[dict[str, str]] = (server(), server(start="#")),
) -> Job:
    """Return a queued job on a host over SSH, with a trial of each commit in each round."""
    tool("oha")
    team = make_personas()
    project, shas = make_project(team.alice, folder / "origin", commits)
    make_definition(team.alice, project, source=source)
    host = add_confirmed(machine, team)
    # Other tests keep the machine busy.
    request = {"rounds": rounds, "hosts": (host.name,), "wait_for_quiet": False}
    return make_run(team.alice, shas, **request).jobs.get()


def finish(job: Job) -> list[float]:
    """Advance the job to its end as a worker does; return the times of its steps."""
    assert leasing.lease_queued_jobs() == [job.pk]
    steps = []
    deadline = time.monotonic() + 60
    while Job.objects.get(pk=job.pk).state not in JOB_ENDED:
        assert time.monotonic() < deadline
        steps.append(time.time())
        result = engine.advance(job.pk)
        time.sleep(result.wait_s or 0)
    return steps
