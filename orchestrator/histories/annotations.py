"""What people write at commits of histories: reads, and the writes of members."""

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
from orchestrator.histories.marked_changes import AnnotationMark
from orchestrator.results.models import Annotation, Point, Series

MAX_TEXT = 2_000
Scope = Literal["series", "case", "benchmark", "project"]
#: What an annotation can be of, from the least to the most.
SCOPES: tuple[Scope, ...] = ("series", "case", "benchmark", "project")


def annotations_for(member: Member) -> QuerySet[Annotation]:
    """All of the team, newest first."""
    return (
        Annotation.objects.filter(member.sees("project"))
        .select_related(
            "project", "benchmark", "case__benchmark", "series__case__benchmark", "series__host",
            "series__metric", "commit", "created_by", "edited_by",
        )
        .order_by("-pk")
    )  # fmt: skip


def annotations_of_benchmark(member: Member, benchmark: Benchmark) -> QuerySet[Annotation]:
    """Those that histories of a benchmark may show, those of its whole project among them."""
    whole = Q(benchmark=None, case=None, series=None)
    within = Q(benchmark=benchmark) | Q(case__benchmark=benchmark) | Q(series__benchmark=benchmark)
    return annotations_for(member).filter(whole | within, project=benchmark.project_id)


def annotation_for(member: Member, annotation_id: UUID) -> Annotation:
    found = annotations_for(member).filter(pk=annotation_id).first()
    if found is None:
        raise NotFoundError("there is no such note in this team: somebody may have deleted it")
    return found


def annotate(
    *, member: Member, commit: Commit, text: str, of: Series | Case | Benchmark | None = None
) -> Annotation:
    """A note at a commit of the member's team: of one series, of a case, of a benchmark, or, of
    None, of the whole project of the commit."""
    member.require(Role.MEMBER, to="write at a commit")
    if not member.sees_project(commit.project_id, commit.project.team_id):
        raise NotFoundError("there is no such commit in this team")
    if of is not None and _project_of(of) != commit.project_id:
        raise InvalidRequestError(
            f"{commit.short_sha} is a commit of another project", field="commit"
        )
    with transaction.atomic():
        made = Annotation.objects.create(
            project=commit.project,
            benchmark=of if isinstance(of, Benchmark) else None,
            case=of if isinstance(of, Case) else None,
            series=of if isinstance(of, Series) else None,
            commit=commit,
            text=_text(text),
            created_by=member.actor,
            created_at=utc_now(),
        )
        record_audit(member=member, action="annotation.created", subject=made.pk)
    return made


def edit_annotation(*, member: Member, annotation_id: UUID, text: str) -> Annotation:
    member.require(Role.MEMBER, to="edit a note")
    with transaction.atomic():
        found = annotation_for(member, annotation_id)
        found.text = _text(text)
        found.edited_by, found.edited_at = member.actor, utc_now()
        found.save(update_fields=["text", "edited_by", "edited_at"])
        record_audit(member=member, action="annotation.edited", subject=found.pk)
    return found


def remove_annotation(*, member: Member, annotation_id: UUID) -> None:
    member.require(Role.MEMBER, to="delete a note")
    with transaction.atomic():
        found = annotation_for(member, annotation_id)
        record_audit(member=member, action="annotation.removed", subject=found.pk)
        found.delete()


def scope_of(annotation: Annotation) -> Scope:
    if annotation.series_id is not None:
        return "series"
    if annotation.case_id is not None:
        return "case"
    return "project" if annotation.benchmark_id is None else "benchmark"


def annotated_points(
    series: Iterable[int], annotations: Iterable[AnnotationMark]
) -> dict[int, int]:
    """Commit → one of these series in which it was measured; of the annotated commits alone."""
    rows = Point.objects.filter(
        series__in=list(series), commit__in={each.commit for each in annotations}
    )
    return dict(rows.order_by("-series").values_list("commit", "series"))


def placed(
    annotations: Sequence[AnnotationMark], points: Points, *, along_default: bool
) -> Mapping[int, list[AnnotationMark]]:
    """Index of a point → what is written there; `points` are in the order of the line.

    A commit that was not measured is shown at the first measured one after it, which is where its
    effect would show; that is known along the default branch only.
    """
    exact = {commit: index for index, commit in enumerate(points.commit.tolist())}
    found: dict[int, list[AnnotationMark]] = defaultdict(list)
    for each in annotations:
        index = exact.get(each.commit)
        if index is None and along_default and each.position is not None:
            index = int(np.searchsorted(points.position, each.position))
        if index is not None and index < len(points):
            found[index].append(each)
    return found


def _project_of(of: Series | Case | Benchmark) -> int:
    benchmark = of if isinstance(of, Benchmark) else of.benchmark
    return benchmark.project_id


def _text(text: str) -> str:
    text = text.strip()
    if not text:
        raise InvalidRequestError("write something: the note is empty", field="text")
    if len(text) > MAX_TEXT:
        raise InvalidRequestError(
            f"the note has {len(text)} characters; shorten it to {MAX_TEXT}", field="text"
        )
    return text
