"""Annotations at commits of histories."""

from http import HTTPStatus
from uuid import UUID

from ninja import Router
from ninja.responses import Status

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, page_of
from orchestrator.api.schemas.annotations import (
    AnnotationIn,
    AnnotationOut,
    AnnotationPage,
    AnnotationTextIn,
    annotation_out,
)
from orchestrator.api.schemas.common import Text
from orchestrator.benchmarks.models import Benchmark, Case, Project
from orchestrator.benchmarks.selectors import benchmark_for, case_for, commits_in, project_for
from orchestrator.fleet.selectors import host_named
from orchestrator.histories import annotations
from orchestrator.regressions.change_points import series_in
from orchestrator.results.models import Series

router = Router(tags=["annotations"])

ANNOTATION = "/annotations/{uuid:annotation_id}"


@router.get("/annotations", response=AnnotationPage, summary="List annotations, newest first")
def list_annotations(
    request: CallerRequest,
    benchmark: Text | None = None,
    project: Text | None = None,
    commit: Text | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> AnnotationPage:
    """Of a benchmark, including those of its whole project. `commit`: the first digits of its
    hash."""
    member = request.auth.member
    if benchmark is not None:
        of = benchmark_for(member, benchmark, project)
        rows = annotations.annotations_of_benchmark(member, of)
    else:
        rows = annotations.annotations_for(member)
        rows = rows if project is None else rows.filter(project=project_for(member, project))
    if commit is not None:
        rows = rows.filter(commit__sha__startswith=commit.lower())
    found, following = page_of(rows, after=cursor, limit=limit)
    return AnnotationPage(annotations=[annotation_out(each) for each in found], next=following)


@router.post("/annotations", response={201: AnnotationOut}, summary="Create an annotation")
def create_annotation(request: CallerRequest, payload: AnnotationIn) -> Status[AnnotationOut]:
    member = request.auth.member
    project, of = _meant(member, payload)
    (commit,) = commits_in(member, project, [payload.commit])
    made = annotations.annotate(member=member, commit=commit, text=payload.text, of=of)
    found = annotations.annotation_for(member, made.pk)
    return Status(HTTPStatus.CREATED, annotation_out(found))


@router.get(ANNOTATION, response=AnnotationOut, summary="Show an annotation")
def show_annotation(request: CallerRequest, annotation_id: UUID) -> AnnotationOut:
    return annotation_out(annotations.annotation_for(request.auth.member, annotation_id))


@router.put(ANNOTATION, response=AnnotationOut, summary="Edit an annotation")
def edit_annotation(
    request: CallerRequest, annotation_id: UUID, payload: AnnotationTextIn
) -> AnnotationOut:
    member = request.auth.member
    annotations.edit_annotation(member=member, annotation_id=annotation_id, text=payload.text)
    return annotation_out(annotations.annotation_for(member, annotation_id))


@router.delete(ANNOTATION, response={204: None}, summary="Delete an annotation")
def remove_annotation(request: CallerRequest, annotation_id: UUID) -> Status[None]:
    annotations.remove_annotation(member=request.auth.member, annotation_id=annotation_id)
    return Status(HTTPStatus.NO_CONTENT, None)


def _meant(
    member: Member, payload: AnnotationIn
) -> tuple[Project, Series | Case | Benchmark | None]:
    if payload.benchmark is None:
        return project_for(member, payload.project or ""), None
    benchmark = benchmark_for(member, payload.benchmark, payload.project)
    if payload.case is None:
        return benchmark.project, benchmark
    case = case_for(benchmark, payload.case)
    if payload.host is None or payload.metric is None:
        return benchmark.project, case
    return benchmark.project, series_in(case, host_named(member, payload.host), payload.metric)
