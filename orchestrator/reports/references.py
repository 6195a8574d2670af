"""Reads of reference results: sources, their results, and those of one suite."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q, QuerySet, TextField
from django.db.models.functions import Cast

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Team
from orchestrator.core.errors import NotFoundError
from orchestrator.reports.models import ReferenceResult, ReferenceSource

Parameters = Mapping[str, str | int | float | bool]
_SEARCHED = (
    "suite", "environment", "profile__name", "case", "metric", "statistic", "unit", "commit",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceValue:
    """A reference result of a case: never measured here, and always shown with its source.

    `profile` is the slug of the team's hardware profile if there is one, else the name of the
    machine in the source. `value` is in the unit of the metric; None is unknown.
    """

    profile: str
    parameters: Parameters
    metric: str
    statistic: str
    value: float | None
    unit: str
    source: str


def load_reference_values(
    team: Team, *, suite: str | None = None, metric: str | None = None
) -> list[ReferenceValue]:
    """Return the results of the team's sources for a suite and a metric, in their order."""
    results = ReferenceResult.objects.filter(source__team=team)
    if suite is not None:
        results = results.filter(suite=suite)
    if metric is not None:
        results = results.filter(metric=metric)
    results = results.select_related("source", "profile").order_by("source__name", "position")
    return [_build_value(each) for each in results]


def _build_value(result: ReferenceResult) -> ReferenceValue:
    return ReferenceValue(
        profile=result.profile.slug if result.profile else result.environment,
        parameters=result.parameters,
        metric=result.metric,
        statistic=result.statistic,
        value=result.value,
        unit=result.unit,
        source=result.source.name,
    )


def load_sources(member: Member) -> QuerySet[ReferenceSource]:
    """Return sources with `figures` and `unknown`, the counts of their results."""
    figures, unknown = Count("results"), Count("results", filter=Q(results__value=None))
    sources = ReferenceSource.objects.filter(team=member.team).order_by("name")
    return sources.annotate(figures=figures, unknown=unknown)


def load_source(member: Member, source_id: UUID) -> ReferenceSource:
    source = load_sources(member).filter(pk=source_id).first()
    if source is None:
        raise NotFoundError.build_for_team("source of reference results")
    return source


def load_reference_results(source: ReferenceSource, words: str = "") -> QuerySet[ReferenceResult]:
    """Return results of a source that contain all these words; get it through `load_source`."""
    results = source.results.select_related("profile")
    results = results.annotate(case=Cast("parameters", TextField()))
    for word in words.split():
        results = results.filter(_build_word_filter(word))
    return results


def _build_word_filter(word: str) -> Q:
    anywhere = Q()
    for field in _SEARCHED:
        anywhere |= Q(**{f"{field}__icontains": word})
    return anywhere
