"""Deleted projects and benchmarks, and their restoration."""

from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.catalogue import BenchmarkOut, build_benchmark_out
from orchestrator.api.schemas.deletions import (
    DeletedListOut,
    build_deleted_benchmark_out,
    build_deleted_project_out,
)
from orchestrator.api.schemas.projects import ProjectOut, build_project_out
from orchestrator.benchmarks.selectors import load_benchmarks_with_versions
from orchestrator.retention import deletions

router = Router(tags=["projects"])


@router.get("/deleted", response=DeletedListOut, summary="List what can be restored")
def list_deleted(request: CallerRequest) -> DeletedListOut:
    member = request.auth.member
    return DeletedListOut(
        projects=[
            build_deleted_project_out(each) for each in deletions.load_deleted_projects(member)
        ],
        benchmarks=[
            build_deleted_benchmark_out(each) for each in deletions.load_deleted_benchmarks(member)
        ],
    )


@router.post(
    "/deleted/projects/{int:project_id}/restore",
    response=ProjectOut,
    summary="Restore a deleted project",
)
def restore_project(request: CallerRequest, project_id: int) -> ProjectOut:
    """409 if another project has its slug now."""
    restored = deletions.restore_project(member=request.auth.member, project_id=project_id)
    return build_project_out(restored)


@router.post(
    "/deleted/benchmarks/{int:benchmark_id}/restore",
    response=BenchmarkOut,
    summary="Restore a deleted benchmark",
)
def restore_benchmark(request: CallerRequest, benchmark_id: int) -> BenchmarkOut:
    """409 if another benchmark of its project has its slug now."""
    restored = deletions.restore_benchmark(member=request.auth.member, benchmark_id=benchmark_id)
    newest = load_benchmarks_with_versions(request.auth.member).get(pk=restored.pk)
    return build_benchmark_out(newest, newest.version)
