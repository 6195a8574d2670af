"""The kinds of rows of a project, ordered so that a row refers only to earlier kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Field, ForeignKey, Model, Q, QuerySet

from orchestrator.alerts.models import Alert
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition, Project
from orchestrator.calibration.models import GoldenOutcome
from orchestrator.fleet.models import (
    HardwareProfile,
    Host,
    HostChange,
    HostSnapshot,
    HostState,
    HostTransport,
)
from orchestrator.reports.models import ReferenceResult, ReferenceSource, SavedReport
from orchestrator.results.models import (
    Annotation,
    Artifact,
    Baseline,
    Bisection,
    Calibration,
    ChangePoint,
    Histogram,
    HostBuildNoise,
    LoadResult,
    Metric,
    Pin,
    Point,
    PointHistogram,
    Reading,
    Removal,
    Retention,
    Series,
    SeriesDetection,
)
from orchestrator.runs.models import Build, InterimAnalysis, Job, Placement, Run, Trial, Variant
from orchestrator.runs.states import RUN_ENDED


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One project, and the team's objects that it refers to."""

    project: Project

    @cached_property
    def unended(self) -> frozenset[UUID]:
        """Runs that are not exported, because they have not ended."""
        rows = Run.objects.filter(definition__benchmark__project=self.project)
        return frozenset(rows.exclude(state__in=RUN_ENDED).values_list("pk", flat=True))

    @cached_property
    def hosts(self) -> frozenset[UUID]:
        of_jobs = Q(job__run__definition__benchmark__project=self.project)
        rows = [
            Series.objects.filter(benchmark__project=self.project).values_list("host"),
            Reading.objects.filter(case__benchmark__project=self.project).values_list("host"),
            Job.objects.filter(run__definition__benchmark__project=self.project).values_list(
                "host"
            ),
            Placement.objects.filter(of_jobs).values_list("host"),
            Placement.objects.filter(of_jobs).values_list("wanted_host"),
            PointHistogram.objects.filter(case__benchmark__project=self.project).values_list(
                "host"
            ),
        ]
        host_ids = {pk for each in rows for (pk,) in each.order_by().distinct()}
        return frozenset(host_ids - {None})

    @cached_property
    def profiles(self) -> frozenset[int]:
        of_jobs = Q(job__run__definition__benchmark__project=self.project)
        wanted = Placement.objects.filter(of_jobs).values_list("wanted_profile", flat=True)
        of_hosts = Host.objects.filter(pk__in=self.hosts).values_list("profile", flat=True)
        figures = ReferenceResult.objects.filter(source__team=self.project.team)
        of_figures = figures.order_by().values_list("profile", flat=True).distinct()
        return frozenset({*wanted, *of_hosts, *of_figures} - {None})


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Rows of one model that belong to a project.

    `path` leads from the model to the project; without a path, `rows` selects them. On import,
    `excluded_fields` and links to rows that are not exported get their defaults, or the values of
    `fixed`. `run` names the link to a run that must have ended.
    """

    name: str
    model: type[Model]
    path: str = ""
    rows: Callable[[Scope], QuerySet[Any]] | None = None
    run: str = ""
    only: Q = field(default_factory=Q)
    excluded_fields: frozenset[str] = frozenset()
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A renamed column would no longer be left out, even if it holds a secret.
        for name in self.excluded_fields:
            self.model._meta.get_field(name)

    def chosen(self, scope: Scope) -> QuerySet[Any]:
        if self.rows is not None:
            rows = self.rows(scope)
        else:
            rows = self.model._base_manager.filter(**{self.path: scope.project})
        if self.run:
            rows = rows.exclude(**{f"{self.run}__in": scope.unended})
        return rows.filter(self.only).order_by("pk")

    @cached_property
    def fields(self) -> list[Field[Any, Any]]:
        """The fields that are exported and imported under their names."""
        return [
            each
            for each in self.model._meta.concrete_fields
            if each.name not in self.excluded_fields
            and (not isinstance(each, ForeignKey) or each.related_model in _KNOWN)
        ]

    @cached_property
    def own_key(self) -> bool:
        """Whether rows have a UUID, which an import keeps if it is free."""
        key = self.model._meta.pk
        return key is not None and key.get_internal_type() == "UUIDField"


def _exclude_fields(*names: str) -> frozenset[str]:
    return frozenset(names)


_OF_CASE = "case__benchmark__project"
_OF_RUN = "definition__benchmark__project"
_OF_TRIAL = "trial__job__run__definition__benchmark__project"
#: Of a host only its name and profile: no address, login or key. The import makes it an external
#: host.
_NOT_OF_HOSTS = _exclude_fields(*(
    each.name for each in Host._meta.concrete_fields
    if each.name not in {"id", "name", "profile", "tags", "created_at"}
))  # fmt: skip

KINDS = (
    Kind(
        name="profiles",
        model=HardwareProfile,
        rows=lambda scope: HardwareProfile.objects.filter(pk__in=scope.profiles),
    ),
    Kind(
        name="hosts",
        model=Host,
        rows=lambda scope: Host.objects.filter(pk__in=scope.hosts),
        excluded_fields=_NOT_OF_HOSTS,
        fixed={"transport": HostTransport.EXTERNAL, "state": HostState.EXTERNAL},
    ),
    Kind(
        name="snapshots",
        model=HostSnapshot,
        rows=lambda scope: HostSnapshot.objects.filter(
            Q(jobs__run__definition__benchmark__project=scope.project)
            | Q(change__host__in=scope.hosts)
        ).distinct(),
    ),
    Kind(
        name="host_changes",
        model=HostChange,
        rows=lambda scope: HostChange.objects.filter(host__in=scope.hosts),
    ),
    Kind(name="commits", model=Commit, path="project"),
    Kind(name="benchmarks", model=Benchmark, path="project"),
    Kind(name="definitions", model=Definition, path="benchmark__project"),
    Kind(name="cases", model=Case, path="benchmark__project"),
    Kind(name="runs", model=Run, path=_OF_RUN, run="pk"),
    Kind(name="variants", model=Variant, path=f"run__{_OF_RUN}", run="run"),
    Kind(
        name="jobs",
        model=Job,
        path=f"run__{_OF_RUN}",
        run="run",
        excluded_fields=_exclude_fields(
            "sealed_secret",
            "tls",
            "claim",
            "claimed_until",
            "poll_at",
            "not_before",
            "current_trial",
            "revision",
        ),
    ),
    Kind(
        name="placements",
        model=Placement,
        path=f"job__run__{_OF_RUN}",
        run="job__run",
        excluded_fields=_exclude_fields("avoid"),
    ),
    Kind(name="trials", model=Trial, path=f"job__run__{_OF_RUN}", run="job__run"),
    Kind(
        name="interim_analyses", model=InterimAnalysis, path=f"job__run__{_OF_RUN}", run="job__run"
    ),
    Kind(name="builds", model=Build, path=f"job__run__{_OF_RUN}", run="job__run"),
    Kind(name="series", model=Series, path="benchmark__project"),
    Kind(name="readings", model=Reading, path=_OF_CASE),
    Kind(name="points", model=Point, path="series__benchmark__project"),
    Kind(name="histograms", model=Histogram, path=_OF_TRIAL, run="trial__job__run"),
    Kind(name="load_results", model=LoadResult, path=_OF_TRIAL, run="trial__job__run"),
    Kind(name="artifacts", model=Artifact, path=_OF_TRIAL, run="trial__job__run"),
    Kind(name="point_histograms", model=PointHistogram, path=_OF_CASE),
    Kind(name="change_points", model=ChangePoint, path="series__benchmark__project"),
    Kind(name="series_detections", model=SeriesDetection, path="series__benchmark__project"),
    Kind(
        name="baselines",
        model=Baseline,
        rows=lambda scope: Baseline.objects.filter(commit__project=scope.project),
    ),
    Kind(
        name="bisections",
        model=Bisection,
        path="change_point__series__benchmark__project",
        only=~Q(state="running"),
    ),
    Kind(name="annotations", model=Annotation, path="project"),
    Kind(name="alerts", model=Alert, path="benchmark__project"),
    Kind(
        name="change_points_of_alerts",
        model=Alert.change_points.through,
        path="alert__benchmark__project",
    ),
    Kind(
        name="runs_of_alerts",
        model=Alert.runs.through,
        path="alert__benchmark__project",
        run="run",
    ),
    Kind(name="golden_outcomes", model=GoldenOutcome, path=f"run__{_OF_RUN}", run="run"),
    Kind(name="calibrations", model=Calibration, path=f"run__{_OF_RUN}", run="run"),
    Kind(name="build_noises", model=HostBuildNoise, path=f"run__{_OF_RUN}", run="run"),
    Kind(
        name="retention",
        model=Retention,
        path="project",
        excluded_fields=_exclude_fields("next_at"),
    ),
    Kind(name="pins", model=Pin, path="project", run="run"),
    Kind(name="removals", model=Removal, path="project", run="run"),
    Kind(name="reports", model=SavedReport, path="benchmark__project"),
    Kind(
        name="sources",
        model=ReferenceSource,
        rows=lambda scope: ReferenceSource.objects.filter(team=scope.project.team),
    ),
    Kind(
        name="figures",
        model=ReferenceResult,
        rows=lambda scope: ReferenceResult.objects.filter(source__team=scope.project.team),
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}
BY_MODEL = {kind.model: kind for kind in KINDS}
#: A metric is written as its key.
_KNOWN = frozenset({*BY_MODEL, Metric})
#: Fields of the project itself. The importing member decides whether it is public.
OF_PROJECT = (
    "slug", "name", "repository_url", "default_branch", "branches", "confirm_changes",
    "bisect_changes", "machine_minutes_a_day",
)  # fmt: skip
