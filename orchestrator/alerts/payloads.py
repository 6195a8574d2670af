"""Events in the form for webhooks (docs/webhooks.md), and as one line of text."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from cli.pitwall.units import format_change
from orchestrator.accounts.members import build_system_member
from orchestrator.accounts.models import Team
from orchestrator.alerts.models import Alert, EventKind
from orchestrator.comparisons.verdict_cache import VerdictCard, load_verdict_cards
from orchestrator.results.models import ChangePoint
from orchestrator.runs.models import Run
from orchestrator.runs.states import RunState, describe_run_state

#: The most changed cases per verdict in an event; the page of the run shows all.
MOST_CHANGES = 20


def run_data(run: Run) -> dict[str, Any]:
    """Return the data of an ended run.

    The run is loaded with `definition__benchmark__project`, variants and commits.
    """
    benchmark = run.definition.benchmark
    cards = load_verdict_cards(build_system_member(run.team), [run])[run.pk]
    text = "; ".join(f"{card.verdict}: {card.summary}" for card in cards) or run.message
    return {
        "title": f"{benchmark.title}: {_build_heading(run, cards)}",
        "text": " ".join(text.split())[:500] or describe_run_state(run.state),
        "url": build_page_url("run", run.pk),
        "run": {
            "id": str(run.pk),
            "project": benchmark.project.slug,
            "benchmark": benchmark.slug,
            "state": run.state,
            "message": run.message[:1000],
            "trigger": run.trigger,
            "commits": [variant.commit.sha for variant in run.variants.all()],
            "verdicts": [_export_verdict(card) for card in cards],
        },
    }


def build_alert_data(alert: Alert, kind: EventKind) -> dict[str, Any]:
    """Return the data of an alert from `load_alerts`."""
    label = alert.get_state_display().lower()
    what = "alert" if kind == EventKind.ALERT_RAISED else f"alert {label}"
    row = alert.change_point
    subject = _describe_broken(alert) if row is None else _describe_change(row)
    text = _build_sentence(row) if row is not None and not alert.summary else alert.summary
    return {
        "title": f"{alert.benchmark.title}: {what}",
        "text": " ".join(text.split())[:500],
        "url": build_page_url("alert", alert.pk),
        "alert": {
            "id": str(alert.pk),
            "kind": alert.kind,
            "state": alert.state,
            "confirmed": alert.confirmed,
            "note": alert.note,
            "project": alert.benchmark.project.slug,
            "benchmark": alert.benchmark.slug,
            "summary": alert.summary,
            "branch": alert.branch,
            "change_points": len(alert.change_points.all()),
            **subject,
        },
    }


def _build_sentence(row: ChangePoint) -> str:
    series = row.series
    change = row.confirmed_change if row.confirmed_change is not None else row.change
    return (
        f"{series.metric.key} {format_change(change)} in {series.case.label} on "
        f"{series.host.name} at {row.commit.short_sha} {row.commit.subject}"
    )


def _describe_change(row: ChangePoint) -> dict[str, Any]:
    series = row.series
    change = row.confirmed_change if row.confirmed_change is not None else row.change
    return {
        "case": series.case.label,
        "host": series.host.name,
        "metric": series.metric.key,
        "change": change,
        "commit": row.commit.sha,
        "before_commit": row.before.sha,
    }


def _describe_broken(alert: Alert) -> dict[str, Any]:
    """Return the fields of a change point; a broken commit has no metric, and no change."""
    assert alert.commit is not None, "a constraint of the table"
    return {
        "case": None,
        "host": None,
        "metric": None,
        "change": None,
        "commit": alert.commit.sha,
        "before_commit": None,
    }


def test_data(team: Team) -> dict[str, Any]:
    return {
        "title": f"Test from Pitwall, team {team.name}",
        "text": "This channel works: events will arrive like this.",
        "url": build_page_url("channels"),
    }


def build_payload(
    kind: str, team: Team, at: datetime, event_id: object, data: dict[str, Any]
) -> Any:
    """Return an event; the fields that all events have come first."""
    first = {"id": str(event_id), "event": str(kind), "at": at.isoformat(), "team": team.slug}
    return {**first, **data}


def build_page_url(page: str, *args: object) -> str:
    return settings.BASE_URL + reverse(page, args=args)


def _build_heading(run: Run, cards: list[VerdictCard]) -> str:
    """Return how the run ended if it did not finish, otherwise its verdicts."""
    verdicts = dict.fromkeys(card.verdict for card in cards)
    if run.state != RunState.FINISHED or not verdicts:
        return describe_run_state(run.state)
    return ", ".join(verdicts)


def _export_verdict(card: VerdictCard) -> dict[str, Any]:
    return {
        "baseline": card.baseline.sha,
        "contender": card.contender.sha,
        "verdict": card.verdict,
        "summary": card.summary,
        "counts": dict(card.counts),
        "changes": [
            {
                "case": each.label,
                "host": each.host_name,
                "verdict": each.verdict,
                "metric": each.metric,
                "change": each.change,
            }
            for each in card.changes[:MOST_CHANGES]
        ],
    }
