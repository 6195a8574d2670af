"""A hostile agent: the engine polls a host with arbitrary answers and files.

No error may be uncaught. A poll may not take longer than MOST_S, need more than MOST_BYTES of
memory, or change a row of another team.
"""

import json
import os
import random
import resource
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.models.functions import Now

from orchestrator.dispatch import engine
from orchestrator.fleet.models import Host
from orchestrator.results.models import Artifact
from orchestrator.runs.models import Build, HostLease, Job, Run, Trial
from orchestrator.runs.states import JobState, TrialState
from tests.fuzz.inputs.mutation import changed_bytes, changed_value
from tests.fuzz.inputs.results import _build_trial_files
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_personas,
    make_project,
    make_run,
)
from tests.support.hostile_host import answer, job_on_hostile_host, leave_files, status

#: Seconds that one poll may hold a thread, and how much the process may grow over all of them.
MOST_S = 10.0
MOST_BYTES = 600 * 2**20


@dataclass(slots=True)
class HostTally:
    """`ended`: polls after which the job had failed; `stored`: trials that were stored."""

    polls: int = 0
    ended: int = 0
    stored: int = 0
    slowest_s: float = 0.0
    grown_bytes: int = 0
    faults: list[str] = field(default_factory=list)


def fuzz(folder: Path, polls: int, seed: int, most_s: float = MOST_S) -> HostTally:
    """`settings.DATA_DIR` belongs to the caller, and the database is empty."""
    people = make_personas()
    job = job_on_hostile_host(people, folder)
    other = _create_other_job(people, folder)
    before, memory = _load_rows(people), _peak_bytes()
    seen = HostTally()
    for number in range(polls):
        took = _poll(job, other, random.Random(f"{seed} {number}"), number, seen)
        if took > most_s:
            seen.faults.append(f"look {number} took {took:.1f} s")
        if _load_rows(people) != before:
            seen.faults.append(f"look {number} changed a row of another team")
            before = _load_rows(people)
    seen.grown_bytes = max(0, _peak_bytes() - memory)
    if seen.grown_bytes > MOST_BYTES:
        seen.faults.append(f"the process grew by {seen.grown_bytes} bytes")
    return seen


def _poll(job: Job, other: Job, chance: random.Random, number: int, seen: HostTally) -> float:
    _begin_again(job)
    _lie(job, other, chance)
    began = time.monotonic()
    try:
        engine.advance(job.pk)
    except Exception as error:
        seen.faults.append(f"look {number}: {type(error).__name__}: {error}"[:500])
    took = time.monotonic() - began
    seen.polls += 1
    seen.slowest_s = max(seen.slowest_s, took)
    now = Job.objects.get(pk=job.pk)
    seen.ended += now.state == JobState.FAILED
    seen.stored += job.trials.exclude(state=TrialState.PLANNED).exclude(state="skipped").exists()
    if "internal error, see the worker's log" in now.message:
        seen.faults.append(f"look {number}: {now.message}"[:500])
    return took


def _begin_again(job: Job) -> None:
    """Reset the job to the middle of its first round."""
    Build.objects.filter(job=job).delete()
    Artifact.objects.filter(trial__job=job, trial__state=TrialState.FAILED).delete()
    job.trials.filter(state__in=["skipped", "failed"]).update(state=TrialState.PLANNED)
    Job.objects.filter(pk=job.pk).update(
        state=JobState.MEASURING, round=1, attempt=1, failures=0, step_started=True, poll_at=Now(),
        journal_offset=0, claim=None, claimed_until=None, message="", ended_at=None,
        host=job.host_id,
    )  # fmt: skip
    job.placements.update(host=job.host_id)
    HostLease.objects.get_or_create(host_id=job.host_id, defaults={"job": job})
    Host.objects.filter(pk=job.host_id).update(state="ready")
    Run.objects.filter(pk=job.run_id).update(state="running", ended_at=None)


def _lie(job: Job, other: Job, chance: random.Random) -> None:
    """Set the agent's answers and files to changed ones of an honest host."""
    trial = chance.choice(list(job.trials.all()))
    reply = status(_events(job, trial, other, chance), offset=chance.choice([10, 2**61]))
    if chance.random() < 0.3:
        reply = changed_value(chance, reply)
    text: Any = json.dumps(reply)
    if chance.random() < 0.2:
        text = changed_bytes(chance, text.encode(), [b"[" * 9000]).decode(errors="replace")
    verbs: dict[str, Any] = {"status": text}
    if chance.random() < 0.5:
        log = {"offset": chance.choice([0, 5, 2**61]), "text": "l" * chance.choice([0, 9, 65_536])}
        verbs["log"] = changed_value(chance, log)
    answer(job, **verbs)
    _leave_files(job, trial, chance)


def _events(job: Job, trial: Trial, other: Job, chance: random.Random) -> list[dict[str, Any]]:
    sha = trial.variant.commit.sha
    ids = [str(trial.pk), str(other.trials.all()[0].pk)]
    build = {"build": f"{sha}-{chance.randrange(50)}", "commit": sha, "label": "l"}
    kinds: list[dict[str, Any]] = [
        {"event": "build_started", **build},
        {"event": "build_done", **build, "cached": False, "seconds": 1.5},
        {"event": "build_failed", **build, "message": "m", "output": "o"},
        {"event": "trial_started", "trial": chance.choice(ids)},
        {"event": "phase", "trial": ids[0], "phase": "measuring", "quiet_s": 0.5},
        {"event": "trial_done", "trial": chance.choice(ids)},
        {"event": "trial_failed", "trial": chance.choice(ids), "code": "server_died",
         "message": "m", "output": "o"},
        {"event": "listening", "port": 80},
    ]  # fmt: skip
    events = [chance.choice(kinds) for _ in range(chance.choice([1, 3, 9, 4000]))]
    ends = [{"event": "round_done"}, {"event": "aborted", "reason": "r", "code": "internal"}]
    return events + chance.choice([[], [], ends[:1], ends[1:]])


def _leave_files(job: Job, trial: Trial, chance: random.Random) -> None:
    sample = chance.choice(_build_trial_files())
    parts = {
        "result_json": sample["result"],
        "tool_json": sample["report"],
        "rows_json": sample["rows"],
    }
    lied = chance.choice(list(parts))
    parts[lied] = changed_value(chance, parts[lied])
    if chance.random() < 0.2:
        parts["result_json"] = {**sample["result"], "loads": [{}] * chance.choice([2, 100_000])}
    folder = leave_files(job, trial)
    for path in folder.iterdir():
        path.unlink()
    leave_files(job, trial, **{name: json.dumps(each).encode() for name, each in parts.items()})
    kind, path = chance.random(), folder / "tool.stderr"
    if kind < 0.1:
        os.mkfifo(path)
    elif kind < 0.2:
        with path.open("wb") as file:
            file.truncate(2**33)
    elif kind < 0.3:
        path.symlink_to("/dev/zero")


def _create_other_job(people: Personas, folder: Path) -> Job:
    project, shas = make_project(people.mallory, folder / "of-blue")
    make_definition(people.mallory, project)
    make_local_host(people.mallory, "blue")
    return make_run(people.mallory, shas[:2], rounds=1, hosts=("blue",)).jobs.get()


def _load_rows(people: Personas) -> list[Any]:
    """Return all rows of runs and hosts of the other team."""
    team = people.mallory.team
    return [
        list(Run.objects.filter(team=team).values()),
        list(Job.objects.filter(run__team=team).values()),
        list(Trial.objects.filter(job__run__team=team).order_by("pk").values()),
        list(Host.objects.filter(team=team).values()),
        Build.objects.filter(job__run__team=team).count(),
    ]


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
