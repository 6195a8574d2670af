"""Many hosts at once: what Pitwall uses while they are idle, start jobs, measure, or are absent."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from celery import current_app
from django.db.models.functions import Now

from orchestrator.accounts.members import Member
from orchestrator.dispatch.wakeups import ADVANCE, wake_engine, wake_job
from orchestrator.runs.models import Job, Trigger
from orchestrator.runs.services import RunRequest, create_run
from orchestrator.runs.states import JOB_ACTIVE
from perf.dispatch.extent import FleetExtent
from perf.dispatch.fleet_meter import COUNTED_S, FleetMeter, FleetUsage
from perf.dispatch.fleet_summary import FleetResult
from perf.harness.processes import read_memory
from perf.harness.repositories import build_server_repository
from perf.harness.seed import add_benchmark, make_account
from perf.harness.service_cpu import Services
from perf.harness.simulated_fleet import SimulatedFleet, run_simulated_fleet

SLUG = "fleet"
#: The hosts of one run.
HOSTS_A_RUN = 20
#: Wake-ups of one job at once.
WAKE_UPS = 100
_START_S = 600.0


def measure_fleet(extent: FleetExtent) -> FleetResult:
    """Measure all states of a fleet, one after the other."""
    account = make_account(SLUG)
    services = Services(os.getppid())
    with tempfile.TemporaryDirectory(prefix="pwf-") as name:
        folder = Path(name)
        shas = build_server_repository(folder / "server")
        add_benchmark(
            account.member, folder / "server", SLUG, duration_s=1, warmup_s=0, connections=[1]
        )
        with run_simulated_fleet(
            folder / "hosts", account.member, extent.hosts, extent.quiet_s
        ) as fleet:
            meter = FleetMeter(services)
            return _LargeFleet(account.member, fleet, meter, services, shas, extent).measure()


class _LargeFleet:
    def __init__(
        self,
        member: Member,
        fleet: SimulatedFleet,
        meter: FleetMeter,
        services: Services,
        shas: Sequence[str],
        extent: FleetExtent,
    ) -> None:
        self._member, self._fleet, self._meter = member, fleet, meter
        self._services, self._shas, self._extent = services, shas, extent

    def measure(self) -> FleetResult:
        idle = self._watch("idle")
        self._start_jobs(self._fleet.names[:1])
        job = self._hold_job()
        marked = self._count(lambda: wake_job(job))
        unmarked = self._count(lambda: current_app.send_task(ADVANCE, args=[str(job)]))
        Job.objects.filter(pk=job).update(poll_at=Now())
        start = self._start_jobs(self._fleet.names[1:])
        _print_state("start", start)
        busy = self._watch("measuring")
        memory = {name: read_memory(pid).pss for name, pid in self._services.pids.items()}
        self._fleet.stop()
        absent = self._watch("absent")
        return FleetResult(
            hosts=self._extent.hosts,
            idle=idle,
            start=start,
            busy=busy,
            absent=absent,
            delays_s=self._fleet.read_delays(busy.began_at, busy.ended_at),
            memory_bytes=memory,
            wake_ups=WAKE_UPS,
            marked=marked,
            unmarked=unmarked,
        )

    def _watch(self, state: str) -> FleetUsage:
        """Return the usage in this state, without what began it."""
        time.sleep(COUNTED_S)
        usage = self._meter.measure(self._extent.window_s)
        _print_state(state, usage)
        return usage

    def _start_jobs(self, names: Sequence[str]) -> FleetUsage:
        """Start a job on each of these hosts, and wait until they measure."""
        for first in range(0, len(names), HOSTS_A_RUN):
            request = RunRequest(
                benchmark=SLUG,
                baseline=self._shas[0],
                contenders=tuple(self._shas[1:]),
                hosts=tuple(names[first : first + HOSTS_A_RUN]),
                rounds=1,
            )
            create_run(member=self._member, request=request, trigger=Trigger.API)
        jobs = Job.objects.filter(run__team=self._member.team)
        wanted = jobs.count()
        self._meter.begin()
        wake_engine()
        deadline = time.monotonic() + _START_S
        while (started := jobs.filter(step_started=True).count()) < wanted:
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {started} of {wanted} jobs started")
            time.sleep(0.5)
        return self._meter.end()

    def _hold_job(self) -> UUID:
        """Return an active job that is not due for long."""
        job = Job.objects.get(run__team=self._member.team, state__in=JOB_ACTIVE)
        Job.objects.filter(pk=job.pk).update(poll_at=Now() + timedelta(hours=1))
        return job.pk

    def _count(self, wake: Callable[[], object]) -> FleetUsage:
        """Return the usage of many wake-ups, with the ticks of the same time."""
        time.sleep(COUNTED_S)
        self._meter.begin()
        for _ in range(WAKE_UPS):
            wake()
        time.sleep(COUNTED_S)
        return self._meter.end()


def _print_state(state: str, usage: FleetUsage) -> None:
    seconds = 60 * usage.minutes
    text = f"{usage.percent_of_a_core:.1f} % of a core, {usage.statements} statements"
    print(f"  {state}: {text} in {seconds:.0f} s", flush=True)
