"""Raise an alert when small confirmed regressions add up to more than the margin.

They are counted from the last release: the newest tagged commit of the main line. Without a tag
they are counted from the start of the history that members chose, or from the first point.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Count, Q

from cli.pitwall.units import format_change, format_interval, format_percent
from orchestrator.accounts.models import Team
from orchestrator.alerts.models import ALERT_ENDED, Alert, AlertKind
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.refs import open_repository
from orchestrator.loadtools.metrics import find_metric
from orchestrator.regressions.bisection_answers import load_effect
from orchestrator.regressions.change_points import load_series_baselines
from orchestrator.results.models import CHANGE_REAL, ChangePoint, ChangeState, Series
from orchestrator.stats.accumulation import (
    FEWEST_CHANGES,
    RealChange,
    TotalChange,
    add_up_small_changes,
)

logger = logging.getLogger(__name__)

#: The newest tags among which the last release is searched.
MOST_TAGS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The commit from which small changes are counted; `position` is −1 for the first point."""

    title: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallChanges:
    """The small regressions of a series since a reference, oldest first, and their total."""

    series: Series
    rows: Sequence[ChangePoint]
    total: TotalChange
    reference: Reference

    @property
    def summary(self) -> str:
        total, metric = self.total, find_metric(self.series.metric.key)
        margin = f", beyond the margin of {format_percent(metric.margin)}" if metric else ""
        return (
            f"{total.changes} small changes since {self.reference.title} add up to "
            f"{format_change(total.change)} ({format_interval((total.low, total.high))}){margin}"
        )


def raise_small_change_alerts(now: datetime) -> None:
    """Raise due alerts. It may run twice: a change point is in one such alert."""
    for project, series in _group_due_series().items():
        try:
            for found in _find_in_project(series, find_release(project)):
                _raise_alert(found, now)
        except Exception:
            logger.exception("small changes of project %s cannot be added up", project.pk)


def find_release(project: Project) -> Reference | None:
    """Return the newest tagged commit of the main line; None without one."""
    names: dict[str, str] = {}
    for name, sha in open_repository(project).list_tag_tips()[:MOST_TAGS]:
        names.setdefault(sha, name)
    tagged = Commit.objects.filter(
        project=project, mainline=True, position__isnull=False, sha__in=list(names)
    )
    newest = tagged.order_by("-position").first()
    if newest is None or newest.position is None:
        return None
    return Reference(title=names[newest.sha], position=newest.position)


def _group_due_series() -> dict[Project, list[Series]]:
    """Return the series with several small regressions, of which one is in no alert yet."""
    new = ChangePoint.objects.filter(
        state=ChangeState.SMALL,
        regressed=True,
        recent=True,
        series__benchmark__deleted_at=None,
        commit__position__isnull=False,
    ).exclude(alerts__kind=AlertKind.SMALL_CHANGES)
    is_small = Q(change_points__state=ChangeState.SMALL, change_points__regressed=True)
    series = (
        Series.objects.filter(pk__in=new.values("series"))
        .annotate(small=Count("change_points", filter=is_small))
        .filter(small__gte=FEWEST_CHANGES)
        .select_related("benchmark__project__team", "metric", "host")
    )
    grouped: dict[Project, list[Series]] = defaultdict(list)
    for each in series.order_by("pk"):
        grouped[each.benchmark.project].append(each)
    return grouped


def _find_in_project(series: Sequence[Series], release: Reference | None) -> Iterator[SmallChanges]:
    baselines = load_series_baselines(series)
    for each in series:
        baseline = baselines.get(each.pk)
        reference = release or Reference(title="the first point", position=-1)
        start = baseline.commit.position if baseline is not None else None
        if baseline is not None and start is not None and start > reference.position:
            reference = Reference(title=baseline.commit.short_sha, position=start)
        found = _add_up(each, reference)
        if found is not None:
            yield found


def _add_up(series: Series, reference: Reference) -> SmallChanges | None:
    handled = Alert.objects.filter(kind=AlertKind.SMALL_CHANGES, state__in=ALERT_ENDED)
    rows = ChangePoint.objects.filter(
        series=series, state__in=CHANGE_REAL, commit__position__gt=reference.position
    ).exclude(alerts__in=handled)
    known = list(rows.select_related("commit", "before").order_by("commit__position", "pk"))
    metric = find_metric(series.metric.key)
    total = add_up_small_changes(list(_read_changes(known)), metric.margin) if metric else None
    if total is None:
        return None
    small = [row for row in known if row.state == ChangeState.SMALL and row.regressed]
    return SmallChanges(series=series, rows=small, total=total, reference=reference)


def _read_changes(rows: Iterable[ChangePoint]) -> Iterator[RealChange]:
    for row in rows:
        difference, error = load_effect(row)
        yield RealChange(
            difference=difference,
            error=error,
            small=row.state == ChangeState.SMALL,
            worse=row.regressed,
        )


def _raise_alert(found: SmallChanges, now: datetime) -> None:
    benchmark = found.series.benchmark
    with transaction.atomic():
        # One at a time: two would raise the same alert.
        Team.objects.select_for_update(no_key=True).get(pk=benchmark.project.team_id)
        alert = _find_open_alert(found) or Alert(
            team_id=benchmark.project.team_id,
            kind=AlertKind.SMALL_CHANGES,
            benchmark=benchmark,
            confirmed=True,
            raised_at=now,
            changed_at=now,
        )
        total = found.total
        if _is_clearest(alert, found):
            alert.change_point, alert.summary = found.rows[-1], found.summary
            alert.total_change = total.change
            alert.total_low, alert.total_high = total.low, total.high
        alert.save()
        alert.change_points.add(*found.rows)


def _is_clearest(alert: Alert, found: SmallChanges) -> bool:
    """Return whether the alert shows this series: it did before, or the others changed less."""
    shown = alert.change_point
    if shown is None or shown.series_id == found.series.pk:
        return True
    return abs(found.total.change) > abs(alert.total_change or 0.0)


def _find_open_alert(found: SmallChanges) -> Alert | None:
    """Return the alert of the same series, or of another one of the benchmark on the host."""
    alerts = Alert.objects.filter(
        kind=AlertKind.SMALL_CHANGES,
        benchmark=found.series.benchmark,
        change_point__series__host=found.series.host,
    ).exclude(state__in=ALERT_ENDED)
    return alerts.select_related("change_point").order_by("pk").first()
