"""Pitwall with the same work: jobs in its queue, its own worker, beat, PostgreSQL and Redis."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db import transaction
from django.db.models import Max

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.fetching import finish_fetch
from orchestrator.benchmarks.models import Project
from orchestrator.runs.models import Job, Trial, Trigger
from orchestrator.runs.services import RunRequest, create_run
from orchestrator.runs.states import JOB_ENDED, JobState
from perf.dispatch.throughput import Score
from perf.dispatch.workload import FILE_BYTES, Work
from perf.harness.repositories import FileRepository
from perf.harness.seed import add_benchmark
from perf.harness.service_cpu import CONTROLLER, Services, subtract
from perf.harness.ssh_hosts import Fleet, SshHost

POLL_S = 0.2
SLUG = "files"


class PitwallFailedError(Exception):
    """A job did not finish, or its work on the host was not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PitwallScore(Score):
    """`cpu_s` is for the controller alone; `services_s` includes every service."""

    services_s: dict[str, float]


class Queue:
    """Queue jobs without trials in Pitwall and wait until they finish.

    Such a job takes its lease, prepares its host, starts a supervisor there, reads the journal and
    ends. For COPY its commit has a new file of 1 MB, which is sent to the host.
    """

    def __init__(self, member: Member, fleet: Fleet, services: Services, folder: Path) -> None:
        self._member = member
        self._fleet = fleet
        self._services = services
        self._files = FileRepository(folder / SLUG)
        self._first_source = self._files.more(1)[0]
        add_benchmark(member, folder / SLUG, SLUG, duration_s=1, warmup_s=0, connections=[1])

    def score(self, work: Work, per_host: int) -> PitwallScore:
        """Queue `per_host` jobs per host at once; at the end each has verifiably done its work."""
        hosts = list(self._fleet.hosts) * per_host
        copies = work is Work.COPY
        shas = self._files.more(len(hosts)) if copies else [self._first_source] * len(hosts)
        if copies:
            # A run can only name commits in the mirror.
            finish_fetch(Project.objects.get(slug=SLUG))
        with transaction.atomic():
            jobs = [self._add(host, sha) for host, sha in zip(hosts, shas, strict=True)]
            before = self._services.cpu_s()
            began = time.time()
        self._wait_for(jobs, limit_s=60 + 15 * per_host)
        used = subtract(before, self._services.cpu_s())
        for job, host, sha in zip(jobs, hosts, shas, strict=True):
            check_done(job, host, sha)
        return PitwallScore(
            jobs=len(jobs),
            elapsed_s=_find_last_end(jobs) - began,
            cpu_s=sum(used[name] for name in CONTROLLER),
            services_s=used,
        )

    def _add(self, host: SshHost, sha: str) -> UUID:
        request = RunRequest(
            benchmark=SLUG,
            baseline=self._files.first,
            contenders=(sha,),
            hosts=(host.name,),
            rounds=1,
        )
        run = create_run(member=self._member, request=request, trigger=Trigger.API)
        Trial.objects.filter(job__run=run).delete()
        return Job.objects.get(run=run).pk

    def _wait_for(self, jobs: Sequence[UUID], *, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        left = Job.objects.filter(pk__in=jobs).exclude(state__in=JOB_ENDED)
        while left.exists():
            if time.monotonic() > deadline:
                one = left.first()
                raise PitwallFailedError(
                    f"{left.count()} of {len(jobs)} jobs did not end in {limit_s:.0f} s; one is "
                    f"{one and one.state}: {one and (one.message or one.phase)}"
                )
            time.sleep(POLL_S)
        bad = Job.objects.filter(pk__in=jobs).exclude(state=JobState.FINISHED).first()
        if bad is not None:
            raise PitwallFailedError(f"job {bad.pk} is {bad.state}: {bad.message}")


def check_done(job: UUID, host: SshHost, sha: str) -> None:
    """Raise PitwallFailedError unless the host's journal and files show that the work was done."""
    journals = list((host.work_dir / "jobs" / str(job)).glob("*/journal.jsonl"))
    events = [
        json.loads(line)["event"] for path in journals for line in path.read_text().splitlines()
    ]
    if events.count("supervisor_started") != 1 or events.count("round_done") != 1:
        raise PitwallFailedError(f"job {job} on {host.name}: its journal says {events}")
    if not _has_file(host, sha):
        raise PitwallFailedError(f"job {job} on {host.name}: the file of {sha} did not arrive")


def _has_file(host: SshHost, sha: str) -> bool:
    """Return whether the file is in the commit's archive or in the repository of commits."""
    archive = host.work_dir / "sources" / f"{sha}.tar.gz"
    if archive.exists():
        return archive.stat().st_size >= FILE_BYTES
    repositories = (host.work_dir / "repositories").glob("*.git")
    return any(_read_size(repository, sha) >= FILE_BYTES for repository in repositories)


def _read_size(repository: Path, sha: str) -> int:
    argv = ["git", "--git-dir", str(repository), "cat-file", "-s", f"{sha}:file.bin"]
    done = subprocess.run(argv, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else 0


def _find_last_end(jobs: Sequence[UUID]) -> float:
    last = Job.objects.filter(pk__in=jobs).aggregate(at=Max("ended_at"))["at"]
    return float(last.timestamp())
