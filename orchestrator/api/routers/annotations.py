"""Annotations at commits of histories."""

from http import HTTPStatus
from uuid import UUID

from ninja import Router
from ninja.responses import Status

from orchestrator.accounts.members import Member
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, cut_page
from orchestrator.api.schemas.annotations import (
    AnnotationIn,
    AnnotationOut,
    AnnotationPage,
    AnnotationTextIn,
    build_annotation_out,
)
from orchestrator.api.schemas.common import Text
from orchestrator.benchmarks.models import Benchmark, Case, Project
from orchestrator.benchmarks.selectors import (
    load_benchmark,
    load_case,
    load_project,
    load_project_commits,
)
from orchestrator.fleet.selectors import load_host_by_name
from orchestrator.histories import annotations
from orchestrator.regressions.change_points import find_series
from orchestrator.results.models import Series

router = Router(tags=["histories"])

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
        target = load_benchmark(member, benchmark, project)
        rows = annotations.load_benchmark_annotations(member, target)
    else:
        rows = annotations.load_annotations(member)
        rows = rows if project is None else rows.filter(project=load_project(member, project))
    if commit is not None:
        rows = rows.filter(commit__sha__startswith=commit.lower())
    page, following = cut_page(rows, after=cursor, limit=limit)
    return AnnotationPage(annotations=[build_annotation_out(each) for each in page], next=following)


@router.post("/annotations", response={201: AnnotationOut}, summary="Create an annotation")
def create_annotation(request: CallerRequest, payload: AnnotationIn) -> Status[AnnotationOut]:
    member = request.auth.member
    project, target = _resolve_target(member, payload)
    (commit,) = load_project_commits(member, project, [payload.commit])
    made = annotations.annotate(member=member, commit=commit, text=payload.text, target=target)
    annotation = annotations.load_annotation(member, made.pk)
    return Status(HTTPStatus.CREATED, build_annotation_out(annotation))


@router.get(ANNOTATION, response=AnnotationOut, summary="Show an annotation")
def show_annotation(request: CallerRequest, annotation_id: UUID) -> AnnotationOut:
    return build_annotation_out(annotations.load_annotation(request.auth.member, annotation_id))


@router.put(ANNOTATION, response=AnnotationOut, summary="Edit an annotation")
def edit_annotation(
    request: CallerRequest, annotation_id: UUID, payload: AnnotationTextIn
) -> AnnotationOut:
    member = request.auth.member
    annotations.edit_annotation(member=member, annotation_id=annotation_id, text=payload.text)
    return build_annotation_out(annotations.load_annotation(member, annotation_id))


@router.delete(ANNOTATION, response={204: None}, summary="Delete an annotation")
def remove_annotation(request: CallerRequest, annotation_id: UUID) -> Status[None]:
    annotations.remove_annotation(member=request.auth.member, annotation_id=annotation_id)
    return Status(HTTPStatus.NO_CONTENT, None)


def _resolve_target(
    member: Member, payload: AnnotationIn
) -> tuple[Project, Series | Case | Benchmark | None]:
    if payload.benchmark is None:
        return load_project(member, payload.project or ""), None
    benchmark = load_benchmark(member, payload.benchmark, payload.project)
    if payload.case is None:
        return benchmark.project, benchmark
    case = load_case(benchmark, payload.case)
    if payload.host is None or payload.metric is None:
        return benchmark.project, case
    return benchmark.project, find_series(
        case, load_host_by_name(member, payload.host), payload.metric
    )
