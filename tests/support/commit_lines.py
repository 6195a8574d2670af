"""Histories with planted changes, for tests of detection and alerts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha1
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Project
from orchestrator.core.clock import utc_now
from orchestrator.core.ids import new_id
from orchestrator.fleet.models import Host, HostTransport
from orchestrator.measurements.recording import MeasuredRow
from orchestrator.regressions.segmentation import detect_next_series
from orchestrator.results.models import ChangePoint, Series
from tests.support.factories import (
    DEFINITION,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    record,
    store_cases,
)

RATE = "requests.rate"
#: The noise of one trial, as a share.
NOISE = 0.01
TRIALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A project with many commits on its main line; only the first one is in a repository."""

    member: Member
    project: Project
    benchmark: Benchmark
    host: Host
    cases: list[Case]
    commits: list[Commit]

    def measure(
        self,
        values: Mapping[int, float],
        *,
        case: int = 0,
        metric: str = RATE,
        seed: int = 1,
        **changes: Any,
    ) -> None:
        """Record five trials of each of these commits (place → value) with a little noise."""
        rng = np.random.default_rng(seed)
        rows = [
            MeasuredRow(
                id=new_id(),
                benchmark=self.benchmark.pk,
                case=self.cases[case].pk,
                host=self.host.pk,
                commit=self.commits[place].pk,
                at=utc_now(),
                validity="valid",
                readings={metric: value * float(rng.normal(1, NOISE))},
                **changes,
            )
            for place, value in values.items()
            for _ in range(TRIALS)
        ]
        with transaction.atomic():
            record(rows)

    def step(self, *, until: int, at: int, change: float, every: int = 1, **more: Any) -> None:
        """Measure every `every`-th commit before `until`; from `at` on changed by `change`."""
        places = [*range(0, until, every)]
        self.measure(
            {place: 1000 * (1 + change if place >= at else 1.0) for place in places}, **more
        )

    def series(self, case: int = 0, metric: str = RATE) -> Series:
        return Series.objects.get(case=self.cases[case], metric__key=metric, host=self.host)

    def detect(self) -> list[ChangePoint]:
        """Run the detection and return all change points, oldest commit first."""
        while detect_next_series():
            pass
        return list(ChangePoint.objects.order_by("commit__position", "found_at"))

    def answer_confirmation_runs(self, truth: Mapping[str, float]) -> int:
        """Fill in queued runs (hash of a commit → requests/s) and return their number."""
        runs = list(self.benchmark.definitions.get().runs.filter(state="queued"))
        for run in runs:
            finish_run(run, [truth[variant.commit.sha] for variant in run.variants.all()])
        return len(runs)


def make_line(
    member: Member,
    folder: Path,
    *,
    commits: int = 60,
    cases: int = 1,
    external: bool = False,
    source: str = DEFINITION,
) -> Line:
    """Create a separate project with such a line, and a host."""
    project, _ = make_project(member, folder, [{"file.txt": "first"}])
    host = make_local_host(member)
    if external:
        Host.objects.filter(pk=host.pk).update(
            transport=HostTransport.EXTERNAL, state="external", work_dir=""
        )
        host.refresh_from_db()
    return build_line(member, project, host, commits=commits, cases=cases, source=source)


def build_line(
    member: Member,
    project: Project,
    host: Host,
    *,
    slug: str = "hello",
    commits: int = 60,
    cases: int = 1,
    source: str = DEFINITION,
) -> Line:
    """Extend a project's main line to `commits` commits, and add a benchmark of `cases` cases."""
    known = list(project.commits.order_by("position"))
    made = list(known)
    for number in range(len(known), commits):
        made.append(
            Commit(
                project=project,
                sha=sha1(f"commit {number}".encode()).hexdigest(),
                parents=[made[-1].sha],
                subject=f"commit {number}",
                author="Ada",
                committed_at=known[0].committed_at + timedelta(minutes=number),
                position=number,
                mainline=True,
            )
        )
    Commit.objects.bulk_create(made[len(known) :])
    axis = ", ".join(str(4 + number) for number in range(cases))
    source = source.replace("connections: [4]", f"connections: [{axis}]")
    definition = make_definition(member, project, slug=slug, source=source)
    return Line(
        member=member,
        project=project,
        benchmark=definition.benchmark,
        host=host,
        cases=store_cases(definition),
        commits=list(project.commits.order_by("position")),
    )
