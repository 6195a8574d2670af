"""Put files, validity and readings of trials into the database, for tests of how they are shown.

Tests of measuring measure.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from orchestrator.core.ids import sha256_hex
from orchestrator.dispatch.outcomes import derive_outcome
from orchestrator.results.models import Artifact, LoadResult
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.run_state import sync_run_state
from orchestrator.stats.histogram import Histogram
from tests.support.factories import record_again

STEAL = "steal: the hypervisor took 3 % of the CPUs' time (limit: at most 1 %): ask who shares it"
DIED = "server_died: the server ended with status 139: look at its log"
SLOW = "underdelivered: only 80 % of the offered 100/s was answered correctly, the server is slow"
BUSY = "busy_neighbour: another process used 80 % of a core (limit: at most 50 %): stop it"
ERRORS = (
    "http_errors: 40 answers with status 500 (limit: at most 0): find out which statuses occurred"
)


def first_trial(run: Run) -> Trial:
    return Trial.objects.filter(job__run=run).order_by("position")[0]


def doubt(trial: Trial, validity: str, *reasons: str) -> Trial:
    Trial.objects.filter(pk=trial.pk).update(validity=validity, reasons=list(reasons))
    trial.refresh_from_db()
    record_again()
    return trial


def invalidate(run: Run, *reasons: str, **which: Any) -> Run:
    """End a measured run again, as if the trials `which` had been invalid for these reasons."""
    Trial.objects.filter(job__run=run, **which).update(validity="invalid", reasons=list(reasons))
    record_again()
    with transaction.atomic():
        for job in run.jobs.all():
            state, message = derive_outcome(job)
            run.jobs.filter(pk=job.pk).update(state=state, message=message)
        Run.objects.filter(pk=run.pk).update(state="running", message="")
        sync_run_state(run.pk)
    run.refresh_from_db()
    return run


def leave_json(trial: Trial, name: str, value: Mapping[str, Any]) -> None:
    """Store a file of the trial, such as result.json."""
    leave_file(trial, name, json.dumps(value).encode())


def leave_file(trial: Trial, name: str, content: bytes) -> None:
    """Store a file of the trial, such as server.log."""
    Artifact.objects.create(
        trial=trial, name=name, sha256=sha256_hex(content), size=len(content),
        compressed=zlib.compress(content),
    )  # fmt: skip


def leave_load(
    trial: Trial, number: int, *, latencies_us: Sequence[int] = (), **changes: Any
) -> LoadResult:
    """Store one of several loads of the trial, with 100 requests at each latency."""
    histogram = Histogram.from_counts(list(latencies_us), [100] * len(latencies_us))
    given = {
        "rate": None,
        "connections": 4,
        "streams": 1,
        "validity": "valid",
        "encoded": histogram.encode() if latencies_us else b"",
        **changes,
    }
    return LoadResult.objects.create(trial=trial, number=number, **given)
