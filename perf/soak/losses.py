"""Find losses, duplicates and leftovers: compare hosts' journals with the database."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from django.db.models import F, Sum

from devstack.processes import map_parents
from orchestrator.results.models import Point, Reading
from orchestrator.runs.models import HostLease, Job, Run, Trial
from orchestrator.runs.states import RunState
from perf.harness.ssh_hosts import Fleet
from perf.soak.faults import belongs_to_host
from tests.support.journals import read_journals

#: A stopped agent takes a moment to end.
PATIENCE_S = 30.0
#: What an agent keeps below its work directory from one job to the next.
KEPT = frozenset(
    {"agents", "builds", "bundles", "data", "host.lock", "installation", "installs", "jobs",
     "programs.json", "pruned", "repositories", "reserve", "sizes.json", "sources", "tools"}
)  # fmt: skip


def compare_trials(requested: Iterable[UUID], fleet: Fleet) -> dict[str, int]:
    """Return counts of trials, and of those for which host and database differ."""
    ours = Trial.objects.filter(job__run__in=list(requested))
    for trial in ours.exclude(state="measured"):
        print(f"  {trial.state}: trial {trial.pk}: {trial.message[:1000]}", flush=True)
    measured = {str(pk) for pk in ours.filter(state="measured").values_list("pk", flat=True)}
    done = Counter(
        trial
        for host in fleet.hosts
        for step in read_journals(host.work_dir)
        for trial in set(step.trials("trial_done"))
    )
    # Unlike the rate, each measured trial has this metric, even if no request succeeded.
    counted = Point.objects.filter(series__metric__key="requests.ok").aggregate(
        all=Sum(F("trials") + F("invalid"))
    )
    return {
        "runs": len(list(requested)),
        "runs_not_finished": Run.objects.filter(pk__in=list(requested))
        .exclude(state__in=(RunState.FINISHED, RunState.NO_DATA))
        .count(),
        "trials": ours.count(),
        "trials_measured": len(measured),
        "trials_failed": ours.filter(state="failed").count(),
        "trials_not_measured": ours.count() - len(measured),
        "trials_without_an_end": ours.filter(state="planned").count(),
        "trials_lost": len(set(done) - measured),
        "trials_made_up": len(measured - set(done)),
        "trials_measured_twice": sum(times > 1 for times in done.values()),
        "trials_without_readings": len(measured) - Reading.objects.filter(pk__in=measured).count(),
        "trials_in_no_point": len(measured) - int(counted["all"] or 0),
    }


def count_leftovers(fleet: Fleet) -> dict[str, int]:
    """Return unneeded processes and folders, after waiting for those that are ending."""
    give_up = time.monotonic() + PATIENCE_S
    while (left := _list_processes(fleet)) and time.monotonic() < give_up:
        time.sleep(0.5)
    for line in left:
        print(f"  still there: {line}", flush=True)
    jobs = {str(pk) for pk in Job.objects.values_list("pk", flat=True)}
    odd = [path for host in fleet.hosts for path in _list_unknown(host.work_dir, jobs)]
    for path in odd:
        print(f"  left behind: {path}", flush=True)
    return {
        "processes_left": len(left),
        "folders_left": len(odd),
        "leases_left": HostLease.objects.count(),
    }


def _list_processes(fleet: Fleet) -> list[str]:
    return [
        f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes()[:200]!r}"
        for pid in map_parents()
        for host in fleet.hosts
        if belongs_to_host(pid, host)
    ]


def _list_unknown(work_dir: Path, jobs: set[str]) -> list[Path]:
    """Return files that are neither permanent folders nor belong to a job of the database."""
    strange = [path for path in work_dir.iterdir() if path.name not in KEPT]
    return strange + [path for path in work_dir.glob("jobs/*") if path.name not in jobs]
