"""The throughput of one alternative: finished jobs, and their CPU time."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from perf.dispatch.alternatives import Alternative
from perf.dispatch.workload import Form, Work
from perf.harness.meter import measure_child
from perf.harness.ssh_hosts import Fleet, SshHost

#: An alternative that exceeds its window by this time is broken.
GRACE_S = 120.0
_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """`jobs` finished in `elapsed_s`, and the controller's CPU seconds for all of them."""

    jobs: int
    elapsed_s: float
    cpu_s: float

    @property
    def jobs_per_minute(self) -> float:
        return 60 * self.jobs / self.elapsed_s

    @property
    def cpu_ms_per_job(self) -> float:
        return 1000 * self.cpu_s / self.jobs


class InvocationFailedError(Exception):
    """An alternative ended with an error; the text has its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Runs alternatives in a folder."""

    fleet: Fleet
    environment: Mapping[str, str]
    folder: Path

    def score(self, alternative: Alternative, work: Work, form: Form, window_s: float) -> Score:
        """Keep all hosts busy for `window_s`; an invocation that still runs then may finish."""
        hosts = self.fleet.hosts
        groups = [hosts] if form is Form.BATCH else [(host,) for host in hosts]
        start = next(_numbers) * 1_000_000
        done = measure_child(
            lambda: self._keep_busy(alternative, work, groups, window_s, start),
            limit_s=window_s + GRACE_S,
        )
        invocations, elapsed_s = done.value
        self._tidy_up()
        jobs = invocations * len(groups[0])
        return Score(jobs=jobs, elapsed_s=elapsed_s, cpu_s=done.cpu_s)

    def alone_s(self, alternative: Alternative, host: SshHost) -> float:
        """Return the seconds of one invocation for an empty job, without other load."""

        def once() -> float:
            began = time.monotonic()
            self._invoke(alternative.argv(Work.EMPTY, (host,), "none"))
            return time.monotonic() - began

        return float(measure_child(once, limit_s=GRACE_S).value)

    def _keep_busy(
        self,
        alternative: Alternative,
        work: Work,
        groups: Sequence[Sequence[SshHost]],
        window_s: float,
        first_number: int,
    ) -> tuple[int, float]:
        began = time.monotonic()
        numbers = itertools.count(first_number)

        def serve(hosts: Sequence[SshHost]) -> int:
            for served in itertools.count(1):
                target = f"{next(numbers)}.bin"
                self._invoke(alternative.argv(work, hosts, target))
                if time.monotonic() > began + window_s:
                    return served
            raise AssertionError("unreachable")

        with ThreadPoolExecutor(len(groups)) as pool:
            invocations = sum(pool.map(serve, groups))
        return invocations, time.monotonic() - began

    def _invoke(self, argv: list[str]) -> None:
        """Use posix_spawn, since the harness runs on the CPUs that it measures."""
        log = self.folder / f"invocation-{next(_numbers)}.log"
        opened = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        pid = os.posix_spawn(
            argv[0],
            argv,
            self.environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), opened, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status != 0:
            output = log.read_text(errors="replace")[-2000:]
            raise InvocationFailedError(f"{argv} ended with {status}: {output}")
        log.unlink()

    def _tidy_up(self) -> None:
        for host in self.fleet.hosts:
            for file in host.work_dir.glob("*.bin"):
                file.unlink()
