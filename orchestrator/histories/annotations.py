"""Annotations at commits of histories: reads, and the writes of members."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Q, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.histories.lines import Points
from orchestrator.histories.marked_changes import PlacedAnnotation
from orchestrator.results.models import Annotation, Point, Series

MAX_TEXT = 2_000
Scope = Literal["series", "case", "benchmark", "project"]
#: The scopes of an annotation, from the narrowest to the widest.
SCOPES: tuple[Scope, ...] = ("series", "case", "benchmark", "project")


def load_annotations(member: Member) -> QuerySet[Annotation]:
    """Return all annotations of the team, newest first."""
    return (
        Annotation.objects.filter(
            member.sees("project"),
            benchmark__deleted_at=None,
            case__benchmark__deleted_at=None,
            series__benchmark__deleted_at=None,
        )
        .select_related(
            "project", "benchmark", "case__benchmark", "series__case__benchmark", "series__host",
            "series__metric", "commit", "created_by", "edited_by",
        )
        .order_by("-pk")
    )  # fmt: skip


def load_benchmark_annotations(member: Member, benchmark: Benchmark) -> QuerySet[Annotation]:
    """Return the annotations that histories of a benchmark may show, including those of its
    project."""
    whole = Q(benchmark=None, case=None, series=None)
    within = Q(benchmark=benchmark) | Q(case__benchmark=benchmark) | Q(series__benchmark=benchmark)
    return load_annotations(member).filter(whole | within, project=benchmark.project_id)


def load_annotation(member: Member, annotation_id: UUID) -> Annotation:
    annotation = load_annotations(member).filter(pk=annotation_id).first()
    if annotation is None:
        raise NotFoundError("there is no such annotation in this team; it may have been deleted")
    return annotation


def annotate(
    *, member: Member, commit: Commit, text: str, target: Series | Case | Benchmark | None = None
) -> Annotation:
    """Create an annotation at a commit of the team.

    It is of a series, a case, a benchmark, or with None of the whole project of the commit.
    """
    member.require(Role.MEMBER, to="create an annotation")
    if not member.sees_project(commit.project_id, commit.project.team_id):
        raise NotFoundError.build_for_team("commit")
    if target is not None and _find_project_id(target) != commit.project_id:
        raise InvalidRequestError(
            f"{commit.short_sha} is a commit of another project", field="commit"
        )
    with transaction.atomic():
        made = Annotation.objects.create(
            project=commit.project,
            benchmark=target if isinstance(target, Benchmark) else None,
            case=target if isinstance(target, Case) else None,
            series=target if isinstance(target, Series) else None,
            commit=commit,
            text=_check_text(text),
            created_by=member.actor,
            created_at=utc_now(),
        )
        record_audit(member=member, action="annotation.created", subject=made.pk)
    return made


def edit_annotation(*, member: Member, annotation_id: UUID, text: str) -> Annotation:
    member.require(Role.MEMBER, to="edit an annotation")
    with transaction.atomic():
        annotation = load_annotation(member, annotation_id)
        annotation.text = _check_text(text)
        annotation.edited_by, annotation.edited_at = member.actor, utc_now()
        annotation.save(update_fields=["text", "edited_by", "edited_at"])
        record_audit(member=member, action="annotation.edited", subject=annotation.pk)
    return annotation


def remove_annotation(*, member: Member, annotation_id: UUID) -> None:
    member.require(Role.MEMBER, to="delete an annotation")
    with transaction.atomic():
        annotation = load_annotation(member, annotation_id)
        record_audit(member=member, action="annotation.removed", subject=annotation.pk)
        annotation.delete()


def describe_scope(annotation: Annotation) -> Scope:
    if annotation.series_id is not None:
        return "series"
    if annotation.case_id is not None:
        return "case"
    return "project" if annotation.benchmark_id is None else "benchmark"


def find_annotated_series(
    series: Iterable[int], annotations: Iterable[PlacedAnnotation]
) -> dict[int, int]:
    """Map each annotated commit to one of these series that contains it."""
    rows = Point.objects.filter(
        series__in=list(series), commit__in={each.commit for each in annotations}
    )
    return dict(rows.order_by("-series").values_list("commit", "series"))


def place_annotations(
    annotations: Sequence[PlacedAnnotation], points: Points, *, along_default: bool
) -> Mapping[int, list[PlacedAnnotation]]:
    """Map the index of a point to its annotations; `points` are in the order of the line.

    An annotation of an unmeasured commit is shown at the next measured one, where its effect would
    show. The next one is known only along the default branch.
    """
    exact = {commit: index for index, commit in enumerate(points.commit.tolist())}
    placed: dict[int, list[PlacedAnnotation]] = defaultdict(list)
    for each in annotations:
        index = exact.get(each.commit)
        if index is None and along_default and each.position is not None:
            index = int(np.searchsorted(points.position, each.position))
        if index is not None and index < len(points):
            placed[index].append(each)
    return placed


def _find_project_id(target: Series | Case | Benchmark) -> int:
    benchmark = target if isinstance(target, Benchmark) else target.benchmark
    return benchmark.project_id


def _check_text(text: str) -> str:
    text = text.strip()
    if not text:
        raise InvalidRequestError("enter the text of the annotation", field="text")
    if len(text) > MAX_TEXT:
        raise InvalidRequestError(
            f"the annotation has {len(text)} characters; shorten it to {MAX_TEXT}", field="text"
        )
    return text
