"""Schemas of deletions: what depends on an object, and what can be restored."""

from collections.abc import Iterable
from datetime import datetime

from ninja import Schema

from orchestrator.benchmarks.models import Benchmark, Project
from orchestrator.core.dependents import DependentCount
from orchestrator.retention.deletions import compute_removal_time


class DependentOut(Schema):
    """`names` of some of them. `is_capped`: there are more than `count`."""

    title: str
    count: int
    names: list[str]
    is_capped: bool


class DependentsOut(Schema):
    dependents: list[DependentOut]


class DeletedOut(Schema):
    """`id` is for its restoration, because another object may have the same slug now."""

    id: int
    project: str
    benchmark: str | None
    name: str
    deleted_at: datetime
    deleted_by: str | None
    removed_at: datetime


class DeletedListOut(Schema):
    """What can be restored, the latest first. Benchmarks of a deleted project are restored with
    it."""

    projects: list[DeletedOut]
    benchmarks: list[DeletedOut]


def build_dependents_out(dependents: Iterable[DependentCount]) -> DependentsOut:
    return DependentsOut(
        dependents=[
            DependentOut(
                title=each.title,
                count=each.count,
                names=list(each.names),
                is_capped=each.is_capped,
            )
            for each in dependents
        ]
    )


def build_deleted_project_out(project: Project) -> DeletedOut:
    return _build_deleted_out(project, project.slug, None, project.name)


def build_deleted_benchmark_out(benchmark: Benchmark) -> DeletedOut:
    return _build_deleted_out(benchmark, benchmark.project.slug, benchmark.slug, benchmark.title)


def _build_deleted_out(
    row: Project | Benchmark, project: str, benchmark: str | None, name: str
) -> DeletedOut:
    assert row.deleted_at is not None, "the selectors return only deleted rows"
    return DeletedOut(
        id=row.pk,
        project=project,
        benchmark=benchmark,
        name=name,
        deleted_at=row.deleted_at,
        deleted_by=row.deleted_by.get_username() if row.deleted_by else None,
        removed_at=compute_removal_time(row),
    )
