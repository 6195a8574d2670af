"""One point of a history: all measurements of its commit, trial by trial."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from orchestrator.benchmarks.models import Commit
from orchestrator.core.errors import NotFoundError
from orchestrator.histories.histories import Part, load_series_history
from orchestrator.histories.reports import History
from orchestrator.results.models import Point, Reading, Series
from orchestrator.runs.models import Trial

#: The limit of trials on a page.
MOST_TRIALS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTrial:
    """A trial of a point. `trial` is None for an imported result, which has a `provenance`."""

    id: UUID
    at: datetime
    value: float
    validity: str
    trial: Trial | None
    provenance: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointDetails:
    """The only point of `history`, its trials, newest first, and related pages."""

    history: History
    commit: Commit
    trials: tuple[PointTrial, ...]
    kinds: int


def find_commit(series: Series, sha: str) -> Commit:
    """Return the commit of a series by the start of its hash; NotFoundError unless it is unique."""
    commits = Commit.objects.filter(
        project=series.benchmark.project_id,
        sha__startswith=sha.lower(),
        pk__in=Point.objects.filter(series=series).values("commit"),
    )[:2]
    if len(commits) != 1:
        raise NotFoundError(f"this history has no commit {sha}, or several that begin with it")
    return commits[0]


def load_point_details(series: Series, sha: str, branch: str = "") -> PointDetails:
    commit = find_commit(series, sha)
    history = load_series_history(series, branch, Part(every=True, at=commit.pk))
    kinds = Point.objects.filter(series=series, commit=commit).count()
    return PointDetails(
        history=history, commit=commit, trials=_load_trials(series, commit), kinds=kinds
    )


def _load_trials(series: Series, commit: Commit) -> tuple[PointTrial, ...]:
    rows = list(
        Reading.objects.filter(
            case=series.case_id,
            commit=commit,
            host=series.host_id,
            metrics__contains=[series.metric_id],
        )
        .order_by("-at")
        .values_list("pk", "at", "validity", "metrics", "values", "provenance")[:MOST_TRIALS]
    )
    own = Trial.objects.select_related("job__run", "job").in_bulk([row[0] for row in rows])
    return tuple(
        PointTrial(
            id=pk,
            at=at,
            value=values[metrics.index(series.metric_id)],
            validity=validity,
            trial=own.get(pk),
            provenance=provenance,
        )
        for pk, at, validity, metrics, values, provenance in rows
    )
