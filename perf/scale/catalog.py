"""Teams, projects, definitions, hosts, commits, cases and series of a generated database."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.selectors import load_member
from orchestrator.accounts.services import create_team, create_token, create_user
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Benchmark, Commit, Definition, Project
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.benchmarks.services import save_definition, store_case_rows
from orchestrator.core.ids import new_hex
from orchestrator.fleet.models import Host, HostState, HostTransport
from orchestrator.fleet.services import save_profile
from orchestrator.measurements.metrics import store_metrics
from orchestrator.results.models import Series
from perf.scale.extent import (
    METRICS,
    NARROW_HOSTS,
    NARROW_TRIALS,
    TRIALS_A_RUN,
    WIDE_CASES,
    WIDE_TRIALS,
    Size,
)

#: The oldest commit's time; the others follow hour by hour.
BEGAN = datetime(2025, 1, 1, tzinfo=UTC)
EVERY = timedelta(hours=1)

DEFINITION = """\
version: 1
title: {title}
subject:
  start: ["{{python}}", "server.py", "{{port}}", "{{framework}}"]
  ready: {{path: /hello, status: 200, timeout_s: 10}}
load:
  path: "/{{page}}"
  connections: "{{connections}}"
  duration_s: 5
  warmup_s: 1
matrix:
  framework: {frameworks}
  page: {pages}
  connections: {connections}
rounds: 6
cooldown_s: 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A generated project: ids in the order in which they are measured.

    `series[cell][metric]`: a cell is a case on a host. The `full` latest commits are measured with
    all cells, earlier ones with the first `line`; each with `trials`.
    """

    benchmark: Benchmark
    definition: Definition
    commits: Sequence[int]
    cells: Sequence[tuple[int, Host]]
    series: Sequence[Sequence[int]]
    trials: int
    full: int
    line: int

    @property
    def own_cells(self) -> int:
        """The number of first cells measured by runs; the others have imported results."""
        # A job has one host.
        on_host = sum(host == self.cells[0][1] for _, host in self.cells)
        return min(TRIALS_A_RUN // self.trials, on_host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All parts, the widest first, and who may read them."""

    member: Member
    token: str
    metrics: Sequence[int]
    parts: Sequence[Part]


def make_catalog(size: Size) -> Catalog:
    team = create_team(slug="bench", name="Bench")
    user = create_user(username="bench", password=new_hex(), team=team, role=Role.OWNER)
    member = load_member(user)
    profile = save_profile(member=member, slug="made", name="Made machine")
    hosts = [
        Host.objects.create(
            team=team, profile=profile, name=name,
            transport=HostTransport.LOCAL, state=HostState.READY,
        )
        for name in ("alpha", "beta", "gamma")
    ]  # fmt: skip
    ids = store_metrics(team.pk, METRICS)
    metrics = [ids[key] for key in METRICS]
    wide = _make_part(
        member, "wide", hosts[:1], metrics, size.commits,
        axes=(10, 4, 5), cases=WIDE_CASES, trials=WIDE_TRIALS, full=size.full, line=size.line,
    )  # fmt: skip
    narrow = [
        _make_part(
            member, f"narrow-{number}", hosts[1 : 1 + NARROW_HOSTS], metrics, size.narrow.commits,
            axes=(2, 4, 8), cases=size.narrow.cases, trials=NARROW_TRIALS,
            full=size.narrow.commits, line=0,
        )
        for number in range(1, size.narrow.projects + 1)
    ]  # fmt: skip
    token = create_token(member=member, name="bench").secret
    return Catalog(member=member, token=token, metrics=metrics, parts=[wide, *narrow])


def _make_part(
    member: Member,
    slug: str,
    hosts: Sequence[Host],
    metrics: Sequence[int],
    commits: int,
    *,
    axes: tuple[int, int, int],
    cases: int,
    trials: int,
    full: int,
    line: int,
) -> Part:
    # No repository: nothing here may wait for one.
    project = Project.objects.create(team=member.team, slug=slug, name=slug.title())
    definition = save_definition(
        member=member, project=project, slug=slug, source=_build_definition(slug, axes)
    )
    ids = store_case_rows(
        benchmark=definition.benchmark, cases=expand(read_spec(definition))[:cases]
    )
    cells = [(case, host) for host in hosts for case in ids]
    return Part(
        benchmark=definition.benchmark,
        definition=definition,
        commits=_commits(project, commits),
        cells=cells,
        series=_create_series(definition.benchmark, cells, metrics),
        trials=trials,
        full=full,
        line=line,
    )


def _build_definition(slug: str, axes: tuple[int, int, int]) -> str:
    frameworks, pages, connections = axes
    return DEFINITION.format(
        title=slug.title(),
        frameworks=[f"framework-{number}" for number in range(frameworks)],
        pages=[f"page-{number}" for number in range(pages)],
        connections=[2**number for number in range(connections)],
    )


def _commits(project: Project, count: int) -> list[int]:
    shas = [hashlib.sha1(f"{project.slug} {n}".encode()).hexdigest() for n in range(count)]
    rows = [
        Commit(
            project=project,
            sha=sha,
            parents=shas[place - 1 : place] if place else [],
            subject=f"Change number {place} of {project.name}",
            author=f"Author {place % 40}",
            committed_at=BEGAN + place * EVERY,
            position=place,
            mainline=True,
        )
        for place, sha in enumerate(shas)
    ]
    return [row.pk for row in Commit.objects.bulk_create(rows, batch_size=2_000)]


def _create_series(
    benchmark: Benchmark, cells: Sequence[tuple[int, Host]], metrics: Sequence[int]
) -> list[list[int]]:
    rows = [
        Series(benchmark=benchmark, case_id=case, host=host, metric_id=metric)
        for case, host in cells
        for metric in metrics
    ]
    dataset = [row.pk for row in Series.objects.bulk_create(rows, batch_size=2_000)]
    width = len(metrics)
    return [dataset[place : place + width] for place in range(0, len(dataset), width)]
