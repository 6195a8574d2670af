"""The benchmark itself; `python -m perf.dispatch` has started Pitwall before."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import perf.harness.django_setup  # noqa: F401

# isort: split
from devstack.demo_client import Client
from perf.dispatch import fleet_summary, summary
from perf.dispatch.alternatives import Alternative, Alternatives
from perf.dispatch.extent import FULL, FULL_FLEET, SHORT, SHORT_FLEET, Extent
from perf.dispatch.large_fleet import measure_fleet
from perf.dispatch.latency import measure_latency
from perf.dispatch.matrix import measure_matrix
from perf.dispatch.options import PARTS, Options, parse
from perf.dispatch.pitwall import Queue
from perf.dispatch.summary import PITWALL, WANTED, Candidate, Measurements
from perf.dispatch.throughput import Throughput
from perf.dispatch.workload import Form, Work
from perf.harness.machine import describe_machine
from perf.harness.report import Requirement, judge_requirements, keep
from perf.harness.repositories import build_server_repository
from perf.harness.seed import Account, add_benchmark, add_fleet, make_account
from perf.harness.service_cpu import Services
from perf.harness.ssh_hosts import run_fleet

NAME = "dispatch"


class Bench:
    """All candidates, set up on one fleet."""

    def __init__(
        self, extent: Extent, throughput: Throughput, alternatives: list[Alternative], folder: Path
    ) -> None:
        self.extent = extent
        self.throughput = throughput
        self.alternatives = alternatives
        self.measurements = Measurements()
        self._folder = folder
        self._account = make_account()
        self._services = Services(os.getppid())
        add_fleet(self._account.member, throughput.fleet)
        self._queue = Queue(self._account.member, throughput.fleet, self._services, folder)
        self._shas = build_server_repository(folder / "server")
        self._client = Client(os.environ["PITWALL_BASE_URL"], self._account.token)

    def run(self) -> None:
        self._add_server_benchmarks(self._account)
        print_indented("warming up")
        rate = self._queue.score(Work.EMPTY, 1).jobs_per_minute
        self.measurements.idle = self._services.idle(5 if self.extent.rounds > 1 else 1)
        for work in Work:
            for number in range(self.extent.rounds):
                rate = self._round(work, number, rate)
        self._measure_latencies()
        for number in range(self.extent.matrix_times):
            print_indented(f"matrix, {number + 1} of {self.extent.matrix_times}")
            self._measure_matrix()

    def _add_server_benchmarks(self, account: Account) -> None:
        """Add `first` for the time to the first process, and `matrix` for the matrix."""
        extent, repository = self.extent, self._folder / "server"
        cases = [2 * number for number in range(1, extent.matrix_cases + 1)]
        add_benchmark(
            account.member, repository, "first", duration_s=0.2, warmup_s=0, connections=[1]
        )
        add_benchmark(
            account.member,
            repository,
            "matrix",
            duration_s=extent.trial_s,
            warmup_s=extent.warmup_s,
            connections=cases,
        )

    def _round(self, work: Work, number: int, rate: float) -> float:
        """Measure every candidate once, in an order that rotates per round.

        Return Pitwall's jobs per minute.
        """
        candidates = [
            (alternative, form) for alternative in self.alternatives for form in alternative.forms
        ]
        order: list[tuple[Alternative, Form] | None] = [None, *candidates]
        start = number * 4 % len(order)
        for each in order[start:] + order[:start]:
            if each is None:
                rate = self._score_pitwall(work, rate)
            else:
                self._score_alternative(work, *each)
        return rate

    def _score_pitwall(self, work: Work, rate: float) -> float:
        """Queue as many jobs as Pitwall should finish in the window, according to its last rate."""
        hosts, window_s = len(self.throughput.fleet.hosts), self.extent.window_s
        score = self._queue.score(work, max(2, round(rate / 60 * window_s / hosts)))
        candidate = Candidate(PITWALL, Form.EACH)
        self.measurements.add(work, candidate, score)
        a_job = {name: used / score.jobs for name, used in score.services_s.items()}
        self.measurements.services.setdefault(work, []).append(a_job)
        print_rate(work, candidate, score.jobs_per_minute, score.cpu_ms_per_job)
        return score.jobs_per_minute

    def _score_alternative(self, work: Work, alternative: Alternative, form: Form) -> None:
        score = self.throughput.score(alternative, work, form, self.extent.window_s)
        candidate = Candidate(alternative.name, form)
        self.measurements.add(work, candidate, score)
        print_rate(work, candidate, score.jobs_per_minute, score.cpu_ms_per_job)

    def _measure_latencies(self) -> None:
        ansible = next(
            alternative for alternative in self.alternatives if alternative.name == "ansible"
        )
        host = self.throughput.fleet.hosts[0]
        print_indented("first process after POST /api/v1/runs")
        for number in range(self.extent.latencies + 1):
            sample = measure_latency(self._client, "first", self._shas, host)
            if number > 0:  # the first run transfers the commits to the host
                self.measurements.latencies.append(sample)
                self.measurements.ansible_alone_s.append(self.throughput.alone_s(ansible, host))

    def _measure_matrix(self) -> None:
        extent = self.extent
        trials = extent.matrix_cases * 2 * extent.matrix_rounds
        self.measurements.matrices.append(
            measure_matrix(
                self._client,
                "matrix",
                self._shas,
                self.throughput.fleet.hosts[0],
                extent.matrix_rounds,
                limit_s=120 + 3 * trials * (extent.trial_s + extent.warmup_s),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    """The values of a part with their limits, a table, and what else is kept."""

    measured: dict[str, float]
    wanted: dict[str, Requirement | None]
    table: str
    more: dict[str, Any]


def main() -> None:
    options = parse()
    results: dict[str, PartResult] = {}
    for part in options.parts:
        came_from = describe_machine()
        began = time.monotonic()
        result = results[part] = _MEASURES[part](options)
        print(f"\n{result.table}\n\n{part}: {time.monotonic() - began:.0f} s in all\n")
        if options.keep:
            answer = judge_requirements(PARTS[part], result.measured, result.wanted)
            more = {"machine": came_from, **result.more}
            print(f"kept in {keep(PARTS[part], {**answer, **more})}")
    measured = {key: value for each in results.values() for key, value in each.measured.items()}
    wanted = {key: want for each in results.values() for key, want in each.wanted.items()}
    print(json.dumps(judge_requirements(NAME, measured, wanted)))


def measure_jobs(options: Options) -> PartResult:
    """Compare jobs with those of the alternatives."""
    with ready_bench(SHORT if options.short else FULL) as bench:
        bench.run()
    data = bench.measurements
    versions = {alternative.name: alternative.version for alternative in bench.alternatives}
    return PartResult(
        measured=summary.get_measured(data),
        wanted=WANTED,
        table=summary.format_text(data),
        more={"versions": versions, "details": summary.list_details(data)},
    )


def measure_simulated_fleet(options: Options) -> PartResult:
    """Measure what Pitwall uses with many hosts."""
    extent = SHORT_FLEET if options.short else FULL_FLEET
    result = measure_fleet(replace(extent, hosts=options.hosts or extent.hosts))
    return PartResult(
        measured=fleet_summary.get_measured(result),
        wanted=fleet_summary.WANTED,
        table=fleet_summary.format_table(result),
        more={"details": fleet_summary.list_details(result)},
    )


_MEASURES: Mapping[str, Callable[[Options], PartResult]] = {
    "jobs": measure_jobs,
    "fleet": measure_simulated_fleet,
}


@contextmanager
def ready_bench(extent: Extent) -> Iterator[Bench]:
    """Yield the hosts, the alternatives and Pitwall, set up; remove hosts and files at the end."""
    with tempfile.TemporaryDirectory(prefix="pwb-") as name:
        folder = Path(name)
        with run_fleet(folder / "hosts", extent.hosts) as fleet:
            (folder / "alternatives").mkdir()
            alternatives = Alternatives(fleet, folder / "alternatives")
            throughput = Throughput(
                fleet=fleet, environment=alternatives.environment(), folder=folder
            )
            yield Bench(extent, throughput, alternatives.all(), folder)


def print_indented(text: str) -> None:
    print(f"  {text}", flush=True)


def print_rate(work: Work, candidate: Candidate, rate: float, cpu_ms: float) -> None:
    print_indented(f"{work}: {candidate}: {rate:.0f} jobs/min, {cpu_ms:.1f} CPU ms each")


if __name__ == "__main__":
    main()
