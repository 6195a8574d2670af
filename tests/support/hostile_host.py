"""A host on this machine whose agent lies, and a job in the middle of its first round there."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.fleet.connect import get_local_work_dir
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from orchestrator.runs import leasing
from orchestrator.runs.models import Job, Trial
from orchestrator.runs.states import JobState
from tests.dispatch.support import THEIR_OHA, facts
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)

PROGRAM = Path(__file__).with_name("hostile_agent.py")


def job_on_hostile_host(
    personas: Personas, folder: Path, *, rounds: int = 1, current: int = 1
) -> Job:
    """Return a leased job of so many rounds, whose current one seems to be started.

    `settings.DATA_DIR` is the test's own.
    """
    project, shas = make_project(personas.alice, folder / "origin")
    make_definition(personas.alice, project)
    host = make_local_host(personas.alice)
    Host.objects.filter(pk=host.pk).update(python=f"{launcher(folder)}")
    record_snapshot(host=host, facts=facts(oha=THEIR_OHA))
    run = make_run(personas.alice, shas[:2], rounds=rounds)
    leasing.lease_queued_jobs()
    run.jobs.update(
        state=JobState.MEASURING, round=current, step_started=True, snapshot=host.snapshots.get()
    )
    get_work_dir(run.jobs.get()).mkdir(parents=True, exist_ok=True)
    answer(run.jobs.get())
    return run.jobs.get()


def launcher(folder: Path) -> Path:
    """Return the program as one command, run by the Python of the tests."""
    path = folder / "hostile-python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAM} "$@"\n')
    path.chmod(0o755)
    return path


def get_work_dir(job: Job) -> Path:
    """Return the work directory of the host."""
    assert job.host is not None
    return get_local_work_dir(job.host)


def answer(job: Job, *events: Mapping[str, Any], **verbs: Any) -> None:
    """Set the answers of the agent from now on; by default `status` has these events."""
    answers = {"status": status(events), **verbs}
    texts = {
        verb: each if isinstance(each, str | int | float) else json.dumps(each)
        for verb, each in answers.items()
    }
    (get_work_dir(job) / "hostile.json").write_text(json.dumps(texts))


def status(events: Sequence[Mapping[str, Any]] = (), **changes: Any) -> dict[str, Any]:
    report = {"alive": True, "started": True, "now": time.time(), "offset": 10, "dropped": 0}
    return {**report, "events": [{"t": time.time(), **each} for each in events], **changes}


def leave_files(job: Job, trial: Trial, **files: bytes) -> Path:
    """Write files of a trial on the host, such as `result_json`; return their folder."""
    folder = get_work_dir(job) / "jobs" / str(job.pk) / "a1-r1" / "trials" / str(trial.pk)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    return folder


def read_calls(job: Job) -> list[str]:
    """Return the calls of the agent: lines of `begin VERB PID` and `end VERB PID`."""
    path = get_work_dir(job) / "calls"
    return path.read_text().splitlines() if path.exists() else []
