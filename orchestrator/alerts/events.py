"""Detect events: a tick looks for changes and stores each event once.

Code that ends a run or changes an alert need not know of channels. If a worker dies, no event is
lost: the next tick finds what was not stored yet, for a day.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q

from orchestrator.accounts.members import build_system_member
from orchestrator.accounts.models import Team
from orchestrator.alerts.models import (
    Alert,
    Channel,
    Delivery,
    DeliveryState,
    Digest,
    Event,
    EventKind,
)
from orchestrator.alerts.payloads import build_alert_data, build_payload, run_data
from orchestrator.alerts.selectors import load_alerts
from orchestrator.core.clock import utc_now
from orchestrator.core.ids import new_id
from orchestrator.runs.models import Run, Trigger
from orchestrator.runs.states import RUN_ENDED

LOOK_BACK = timedelta(days=1)
#: No run takes longer; this limits the query for ended runs to recent ones.
LONGEST_RUN = timedelta(days=14)
KEPT = timedelta(days=30)
#: The most events of one team and kind in one tick.
AT_ONCE = 20
#: Triggers of runs that somebody requested; Pitwall's own runs are no events.
_REPORTED_TRIGGERS = (Trigger.WEB, Trigger.API, Trigger.SCHEDULE)


def record_events(now: datetime) -> None:
    """Store new events and delete old ones. It may run twice."""
    for team in Team.objects.filter(channels__enabled=True).distinct():
        _record_team_events(team, now)
    _delete_old(now)


def record_event(
    team: Team,
    kind: EventKind,
    subject: UUID,
    at: datetime,
    data: dict[str, Any],
    version: str = "",
) -> Event | None:
    """Return the event with its deliveries; None if it was stored before."""
    event_id = new_id()
    try:
        with transaction.atomic():
            event = Event.objects.create(
                id=event_id,
                team=team,
                kind=kind,
                subject=subject,
                version=version,
                data=build_payload(kind, team, at, event_id, data),
                at=at,
            )
            # Locked, so that two events find the same digest.
            listening = Channel.objects.select_for_update().filter(
                team=team, enabled=True, events__contains=[kind], created_at__lte=at
            )
            for channel in listening.order_by("pk"):
                _add_delivery(channel, event, utc_now())
    except IntegrityError:
        return None
    return event


def _add_delivery(channel: Channel, event: Event, now: datetime) -> Delivery:
    """Add to a delivery that is sent at once, or to the channel's next digest.

    The caller has locked the row of the channel.
    """
    pending = None
    if channel.digest != Digest.IMMEDIATE:
        waiting = channel.deliveries.filter(state=DeliveryState.WAITING, tries=0, log=[])
        # Locked: a worker that sends it waits until it contains this event.
        pending = waiting.filter(next_at__gt=now).select_for_update().first()
    delivery = pending or Delivery.objects.create(
        channel=channel, next_at=compute_digest_time(channel.digest, now), created_at=now
    )
    delivery.events.add(event)
    return delivery


def compute_digest_time(digest: str, now: datetime) -> datetime:
    """Return the next full hour or midnight, UTC; now if there is no digest."""
    if digest == Digest.IMMEDIATE:
        return now
    hour = now.replace(minute=0, second=0, microsecond=0)
    if digest == Digest.HOURLY:
        return hour + timedelta(hours=1)
    return hour.replace(hour=0) + timedelta(days=1)


def _record_team_events(team: Team, now: datetime) -> None:
    channels = list(Channel.objects.filter(team=team, enabled=True))
    wanted = {kind for channel in channels for kind in channel.events}
    since = max(now - LOOK_BACK, min(channel.created_at for channel in channels))
    if EventKind.RUN_ENDED in wanted:
        for run in _load_ended_runs(team, since):
            record_event(team, EventKind.RUN_ENDED, run.pk, run.ended_at or now, run_data(run))
    if wanted & {EventKind.ALERT_RAISED, EventKind.ALERT_CHANGED}:
        for alert, kind, at, version in _load_alert_events(team, since):
            if kind in wanted:
                data = build_alert_data(alert, kind)
                record_event(team, kind, alert.pk, at, data, version)


def _load_ended_runs(team: Team, since: datetime) -> Iterator[Run]:
    noted = Event.objects.filter(kind=EventKind.RUN_ENDED, subject=OuterRef("pk"))
    rows = Run.objects.filter(
        ~Exists(noted),
        team=team,
        state__in=RUN_ENDED,
        trigger__in=_REPORTED_TRIGGERS,
        created_at__gte=since - LONGEST_RUN,
        ended_at__gte=since,
        definition__benchmark__deleted_at=None,
    ).select_related("team", "definition__benchmark__project")
    yield from rows.prefetch_related("variants__commit").order_by("ended_at")[:AT_ONCE]


def _load_alert_events(
    team: Team, since: datetime
) -> Iterator[tuple[Alert, EventKind, datetime, str]]:
    """Yield only the latest change of an alert: its log has those between two ticks."""
    recent = Q(changed_at__gte=since) | Q(raised_at__gte=since)
    alerts = list(load_alerts(build_system_member(team)).filter(recent).order_by("changed_at"))
    known = Event.objects.filter(subject__in=[alert.pk for alert in alerts])
    noted = set(known.values_list("kind", "subject", "version"))
    for alert in alerts:
        version = alert.changed_at.isoformat()
        if alert.raised_at >= since and (EventKind.ALERT_RAISED, alert.pk, "") not in noted:
            yield alert, EventKind.ALERT_RAISED, alert.raised_at, ""
        changed = alert.changed_at >= since and alert.changed_at > alert.raised_at
        if changed and (EventKind.ALERT_CHANGED, alert.pk, version) not in noted:
            yield alert, EventKind.ALERT_CHANGED, alert.changed_at, version


def _delete_old(now: datetime) -> None:
    old = Event.objects.filter(at__lt=now - KEPT).values_list("pk", flat=True)[:200]
    if event_ids := list(old):
        Delivery.objects.filter(events__in=event_ids).delete()
        Event.objects.filter(pk__in=event_ids).delete()
