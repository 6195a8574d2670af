"""Alerts and change points for pages: words, links and badges."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from cli.pitwall.units import format_interval, format_percent
from orchestrator.alerts.models import Alert, AlertKind, AlertState
from orchestrator.alerts.selectors import load_bisections
from orchestrator.benchmarks.models import Commit
from orchestrator.fleet.models import HostTransport
from orchestrator.histories.histories import Part, load_series_history
from orchestrator.loadtools.metrics import PRIMARY, find_metric
from orchestrator.regressions.bisection_answers import is_bad_answer, read_answers
from orchestrator.regressions.commit_paths import load_path_commits
from orchestrator.results.models import (
    CHANGE_REAL,
    Bisection,
    BisectionState,
    ChangePoint,
    ChangeState,
)
from orchestrator.web.forms import build_benchmark_key
from orchestrator.web.history_drawing import Drawing, draw_history

#: States whose badges look like that of another state with the same meaning.
ALERT_BADGES = {
    AlertState.OPEN: "suspect",
    AlertState.ACKNOWLEDGED: "running",
    AlertState.CONFIRMED: "failed",
    AlertState.SILENCED: "maintenance",
    AlertState.RESOLVED: "finished",
    AlertState.ACCEPTED: "finished",
    AlertState.DISMISSED: "cancelled",
}
CHANGE_BADGES = {
    ChangeState.OPEN: "planned",
    ChangeState.CONFIRMING: "measuring",
    ChangeState.CONFIRMED: "failed",
    ChangeState.SMALL: "suspect",
    ChangeState.REFUTED: "cancelled",
    ChangeState.DISMISSED: "cancelled",
    ChangeState.SUPERSEDED: "cancelled",
}

#: The most points that are drawn around a change; half of them are before it.
POINTS_AROUND = 60
#: The metric of the most important change point of an alert comes first here.
_HEADLINES = ("capacity.rate", "requests.rate", *PRIMARY["open"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """A change point; `row` is one of `with_parts`.

    `distributions_url` is empty for results of others: they have no distributions.
    """

    row: Any
    metric: str
    badge: str
    history_url: str
    compare_url: str
    distributions_url: str

    @property
    def display_change(self) -> float:
        """The change as the confirmation run measured it, otherwise as detected."""
        return (
            self.row.confirmed_change if self.row.confirmed_change is not None else self.row.change
        )

    @property
    def revisions(self) -> list[tuple[datetime, str]]:
        return [(datetime.fromisoformat(each["at"]), each["text"]) for each in self.row.revisions]

    @property
    def seen_interval(self) -> tuple[float, float]:
        return self.row.low, self.row.high

    @property
    def display_interval(self) -> tuple[float, float]:
        if self.row.confirmed_low is not None and self.row.confirmed_high is not None:
            return self.row.confirmed_low, self.row.confirmed_high
        return self.row.low, self.row.high


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertView:
    """An alert with its most important change point, and the number of others.

    A broken commit has no change point (`lead` is None), and is its own `cause`. `cause` is the
    commit that caused it, if it is known; `comes_from` says it in words.
    """

    alert: Alert
    badge: str
    lead: ChangeView | None
    others: int
    cause: Commit | None
    comes_from: str

    @property
    def key(self) -> str:
        return str(self.alert.pk)

    @property
    def title(self) -> str:
        """Return the benchmark and what the alert is about."""
        subject = self.lead.metric if self.lead else "broken commit"
        return f"{self.alert.benchmark.title}: {subject}"

    @property
    def display_change(self) -> float | None:
        """The change, or what several small ones add up to; None for a broken commit."""
        if self.alert.total_change is not None:
            return self.alert.total_change
        return self.lead.display_change if self.lead else None

    @property
    def display_interval(self) -> tuple[float, float] | None:
        if self.alert.total_low is not None and self.alert.total_high is not None:
            return self.alert.total_low, self.alert.total_high
        return self.lead.display_interval if self.lead else None

    @property
    def verdict(self) -> str:
        """Return what changed, by how much, and whether it was confirmed, as one sentence."""
        if self.lead is None:
            return f"{self.alert.summary}."
        row, change = self.lead.row, self.lead.display_change
        place = f" of {row.series.case.label}" if row.series.case.label else ""
        where = f"{self.lead.metric}{place} on {row.series.host.name}"
        if self.alert.summary:
            return f"{where}: {self.alert.summary}; a confirmation run confirmed each of them."
        return (
            f"{where} {'rose' if change > 0 else 'fell'} by "
            f"{format_percent(abs(change), decimals=1)} "
            f"(95 % interval {format_interval(self.lead.display_interval)}); {self._certainty}."
        )

    @property
    def _certainty(self) -> str:
        if self.alert.confirmed:
            return "a confirmation run confirmed it"
        host = self.lead.row.series.host if self.lead else None
        if host is not None and host.transport == HostTransport.EXTERNAL:
            return "not verified, because external results cannot be measured again"
        return "it is not confirmed yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step of a bisection: the commit that was measured against the last good one."""

    commit: Commit
    change: float | None
    blocks: int
    bad: bool | None
    run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionView:
    """A bisection with its steps in the order of the commits."""

    search: Bisection
    commits: int
    steps: tuple[StepView, ...]


def change_view(row: Any) -> ChangeView:
    key = row.series.metric.key
    info = find_metric(key)
    return ChangeView(
        row=row,
        metric=info.title if info else key,
        badge=CHANGE_BADGES[ChangeState(row.state)]
        if row.regressed
        else _build_improvement_badge(row),
        history_url=build_history_url(row),
        compare_url=compare_url(row),
        distributions_url=build_distributions_url(row),
    )


def build_alert_view(alert: Alert) -> AlertView:
    badge = ALERT_BADGES[AlertState(alert.state)]
    if alert.change_point is None:
        return AlertView(
            alert=alert,
            badge=badge,
            lead=None,
            others=0,
            cause=alert.commit,
            comes_from=alert.summary,
        )
    is_sum = alert.kind == AlertKind.SMALL_CHANGES
    return AlertView(
        alert=alert,
        badge=badge,
        lead=change_view(
            alert.change_point if is_sum else _find_headline(alert.change_point, alert)
        ),
        others=max(0, len(alert.change_points.all()) - 1),
        cause=None if is_sum else find_cause(alert.change_point),
        comes_from=alert.summary
        if is_sum
        else describe_origin(alert.change_point, load_bisections(alert)),
    )


def draw_change(row: ChangePoint) -> Drawing | None:
    """Return the history around a change; None if it has no points on both sides any more."""
    part = Part(limit=POINTS_AROUND, around=row.commit_id)
    return draw_history(load_series_history(row.series, part=part), row)


def find_cause(row: ChangePoint) -> Commit | None:
    """Return the commit that a bisection found, or the only one between the two levels."""
    if row.culprit is not None:
        return row.culprit
    return row.commit if row.commit.parents == [row.before.sha] else None


def describe_origin(row: ChangePoint, searches: Sequence[Bisection]) -> str:
    """Return which commit the change comes from, in words, as far as known."""
    cause = find_cause(row)
    if cause is not None:
        return f"caused by {cause.short_sha} {cause.subject}"
    for search in reversed(searches):
        if search.state == BisectionState.RUNNING:
            return f"bisection of {len(search.path)} commits: {search.message or 'begins'}"
        if search.state not in (BisectionState.FOUND, BisectionState.PART):
            return f"bisection ended: {search.message}"
    return f"between {row.before.short_sha} and {row.commit.short_sha}"


def build_bisection_view(row: ChangePoint, search: Bisection) -> BisectionView:
    """Return the bisection of a change point with the result of each step."""
    commits = load_path_commits(row, search.path)
    pairs = zip(read_answers(search), search.answers, strict=True)
    steps = [
        (
            answer.index,
            StepView(
                commit=commits[answer.index],
                change=answer.change,
                blocks=answer.blocks,
                bad=is_bad_answer(search, answer),
                run_id=each.get("run"),
            ),
        )
        for answer, each in pairs
    ]
    steps += [
        (index, StepView(commit=commits[index], change=None, blocks=0, bad=None, run_id=None))
        for index in search.unbuildable
    ]
    ordered = sorted(steps, key=lambda step: step[0])
    return BisectionView(
        search=search, commits=len(commits), steps=tuple(step for _, step in ordered)
    )


def build_history_url(row: Any) -> str:
    series = row.series
    query = {
        "benchmark": build_benchmark_key(series.benchmark),
        "case": series.case.key,
        "host": series.host.name,
        "metric": series.metric.key,
        "at": row.commit.short_sha,
    }
    return f"{reverse('history')}?{urlencode(query)}"


def compare_url(row: Any) -> str:
    query = {
        "benchmark": build_benchmark_key(row.series.benchmark),
        "baseline": row.before.sha,
        "contender": row.commit.sha,
    }
    return f"{reverse('compare')}?{urlencode(query)}"


def build_distributions_url(row: Any) -> str:
    """Return the address of the distributions of both sides, one over the other."""
    if row.series.host.transport == HostTransport.EXTERNAL:
        return ""
    query = {
        "benchmark": build_benchmark_key(row.series.benchmark),
        "baseline": row.before.sha,
        "contender": row.commit.sha,
        "case_key": row.series.case.key,
        "host_id": row.series.host.pk.hex,
    }
    return f"{reverse('compare-case')}?{urlencode(query)}"


def build_alert_history(alert: Alert) -> list[tuple[datetime, str]]:
    """Return the history of an alert and of its main change point, oldest first."""
    done = [
        (datetime.fromisoformat(each["at"]), f"{each['by'] or 'Pitwall'}: {each['text']}")
        for each in alert.log
    ]
    known = alert.change_point.revisions if alert.change_point is not None else []
    revisions = [(datetime.fromisoformat(each["at"]), each["text"]) for each in known]
    return sorted([*revisions, *done], key=lambda each: each[0])


def _find_headline(clearest: ChangePoint, alert: Alert) -> ChangePoint:
    """Return the change point of the alert's most important metric; confirmed ones first."""
    rows = [clearest, *alert.change_points.all()]
    return min(rows, key=_rank_change)


def _rank_change(row: ChangePoint) -> tuple[bool, int]:
    key = row.series.metric.key
    place = _HEADLINES.index(key) if key in _HEADLINES else len(_HEADLINES)
    return row.state != ChangeState.CONFIRMED, place


def _build_improvement_badge(row: Any) -> str:
    return "finished" if row.state in CHANGE_REAL else CHANGE_BADGES[row.state]
