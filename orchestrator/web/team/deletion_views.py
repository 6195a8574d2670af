"""Deleted projects and benchmarks of the team, and their restoration."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.retention.deletions import (
    DAYS_TO_RESTORE,
    compute_removal_time,
    load_deleted_benchmarks,
    load_deleted_projects,
    restore_benchmark,
    restore_project,
)
from orchestrator.web.access import for_member


@for_member
def deleted(request: HttpRequest, member: Member) -> HttpResponse:
    kinds = (
        ("Project", "project-restore", load_deleted_projects(member)),
        ("Benchmark", "benchmark-restore", load_deleted_benchmarks(member)),
    )
    rows = [
        (kind, page, each, compute_removal_time(each))
        for kind, page, records in kinds
        for each in records
    ]
    rows.sort(key=lambda row: row[-1], reverse=True)
    return render(request, "team/deleted.html", {"rows": rows, "days": DAYS_TO_RESTORE})


@for_member
@require_POST
def restore_deleted_project(request: HttpRequest, member: Member, project_id: int) -> HttpResponse:
    project = restore_project(member=member, project_id=project_id)
    messages.success(request, f"The project “{project.name}” was restored.")
    return redirect("project", project.slug)


@for_member
@require_POST
def restore_deleted_benchmark(
    request: HttpRequest, member: Member, benchmark_id: int
) -> HttpResponse:
    benchmark = restore_benchmark(member=member, benchmark_id=benchmark_id)
    messages.success(request, f"The benchmark “{benchmark.title}” was restored.")
    return redirect("benchmark", benchmark.project.slug, benchmark.slug)
