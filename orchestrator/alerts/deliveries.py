"""Send due deliveries: once, or again if a worker died before it stored the answer."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

from orchestrator.accounts.mail_limits import reserve_mails
from orchestrator.alerts.channels import webhook
from orchestrator.alerts.channels.message import Line, Message, OutgoingRequest
from orchestrator.alerts.channels.registry import FORMS
from orchestrator.alerts.models import Channel, ChannelKind, Delivery, DeliveryState
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import PitwallError
from orchestrator.database.fair_order import select_first_of_each_team
from orchestrator.fleet.vault import unseal
from orchestrator.transport.http import TIMEOUT_S, send

#: Pauses before the next try, in seconds; after the last try Pitwall gives up.
PAUSES_S = (10, 60, 300, 1800, 7200, 21600)
#: Longer than a try may take: a worker without an answer after this time is considered dead.
LEASE = timedelta(seconds=6 * TIMEOUT_S)
#: The most characters of an answer, and the most tries of a delivery, that are stored.
MOST_ANSWER, MOST_TRIES_KEPT = 1000, 30
#: The most events in the text of a digest.
MOST_LINES = 50
_GONE = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`status` is that of the answer, None without one; `error` is empty on success."""

    status: int | None = None
    answer: str = ""
    error: str = ""


def load_due_delivery_ids(now: datetime) -> list[UUID]:
    """Return the due deliveries, in an order that is fair to teams."""
    due = Delivery.objects.filter(state=DeliveryState.WAITING, next_at__lte=now)
    return select_first_of_each_team(due.filter(channel__enabled=True), team="channel__team")


def find_delivery_team_id(delivery_id: UUID) -> int | None:
    """Return the key of the team whose channel this delivery is for."""
    deliveries = Delivery.objects.filter(pk=delivery_id)
    return deliveries.values_list("channel__team", flat=True).first()


def deliver(delivery_id: UUID, now: datetime) -> bool:
    """Try a due delivery once. Return False if another worker has it."""
    delivery = _claim_delivery(delivery_id, now)
    if delivery is None:
        return False
    began = time.monotonic()
    try:
        outcome = _send(delivery)
    except (PitwallError, SMTPException, OSError) as error:
        outcome = Outcome(error=str(error) or type(error).__name__)
    _record_attempt(delivery, outcome, ms=round(1000 * (time.monotonic() - began)))
    return True


@transaction.atomic
def _claim_delivery(delivery_id: UUID, now: datetime) -> Delivery | None:
    """Claim the delivery by moving `next_at` ahead by LEASE."""
    rows = Delivery.objects.select_for_update(skip_locked=True, of=("self",))
    delivery = (
        rows.select_related("channel__team")
        .filter(pk=delivery_id, state=DeliveryState.WAITING, next_at__lte=now)
        .filter(channel__enabled=True)
        .first()
    )
    if delivery is None:
        return None
    delivery.next_at = now + LEASE
    delivery.tries += 1
    delivery.save(update_fields=["next_at", "tries"])
    return delivery


def _send(delivery: Delivery) -> Outcome:
    channel = delivery.channel
    message = build_message(delivery)
    outgoing = FORMS[channel.kind](message)
    delivery.body = outgoing.body
    if channel.kind == ChannelKind.EMAIL:
        return _send_mail(delivery, message, outgoing)
    delivery.headers = _build_headers(delivery, outgoing)
    answer = send(
        "POST",
        unseal(channel, "sealed_url"),
        body=outgoing.body.encode(),
        headers=delivery.headers,
        allowed=settings.ALLOWED_INTERNAL_NETWORKS,
        most_bytes=MOST_ANSWER,
    )
    text = answer.body.decode(errors="replace").replace("\0", "")
    error = "" if answer.ok else f"the server answered with status {answer.status}"
    if 300 <= answer.status < 400:
        error += "; redirects are not followed: use the final address"
    return Outcome(status=answer.status, answer=text, error=error)


def build_message(delivery: Delivery) -> Message:
    data: list[dict[str, Any]] = [event.data for event in delivery.events.order_by("at", "pk")]
    several = len(data) > 1
    lines = [
        Line(text=f"{each['title']}: {each['text']}" if several else each["text"], url=each["url"])
        for each in data[:MOST_LINES]
    ]
    if len(data) > MOST_LINES:
        more = len(data) - MOST_LINES
        lines.append(Line(text=f"and {more} more", url=f"{settings.BASE_URL}/"))
    team = delivery.channel.team.name
    title = f"{len(data)} events in {team}" if several else data[0]["title"]
    return Message(title=title, lines=lines, data=data)


def _build_headers(delivery: Delivery, outgoing: OutgoingRequest) -> dict[str, str]:
    headers = {"Content-Type": outgoing.content_type, "User-Agent": "Pitwall"}
    channel = delivery.channel
    if channel.kind != ChannelKind.WEBHOOK:
        return headers
    kind = delivery.events.values_list("kind", flat=True)[0]
    secret = unseal(channel, "sealed_secret")
    signed = webhook.sign_body(secret, int(time.time()), outgoing.body.encode())
    return {
        **headers,
        "Pitwall-Event": kind,
        "Pitwall-Delivery": str(delivery.pk),
        "Pitwall-Signature": signed,
    }


def _send_mail(delivery: Delivery, message: Message, outgoing: OutgoingRequest) -> Outcome:
    reserve_mails(delivery.channel.team, len(delivery.channel.addresses))
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].rstrip(">") or "localhost"
    # The id is the same at each try: a mail server that accepted it twice shows it once.
    own = {"Message-ID": f"<{delivery.pk}@{domain}>", "Auto-Submitted": "auto-generated"}
    delivery.headers = {"To": ", ".join(delivery.channel.addresses), **own}
    EmailMessage(
        subject=" ".join(message.title.split())[:200],
        body=outgoing.body,
        to=delivery.channel.addresses,
        headers=own,
    ).send()
    return Outcome()


def _record_attempt(delivery: Delivery, outcome: Outcome, *, ms: int) -> None:
    now = utc_now()
    ours = Delivery.objects.filter(pk=delivery.pk, next_at=delivery.next_at)
    pause = _pause_s(delivery.tries)
    state, next_at = DeliveryState.WAITING, now
    if not outcome.error:
        state = DeliveryState.DELIVERED
    elif pause is None or outcome.status == _GONE:
        state = DeliveryState.FAILED
    else:
        next_at = now + timedelta(seconds=pause)
    tried = {
        "at": now.isoformat(),
        "status": outcome.status,
        "ms": ms,
        "error": outcome.error[:500],
        "answer": outcome.answer,
    }
    ours.update(
        state=state,
        next_at=next_at,
        headers=delivery.headers,
        body=delivery.body,
        log=[*delivery.log, tried][-MOST_TRIES_KEPT:],
    )


def _pause_s(tries: int) -> int | None:
    """Return the pause; None after the last try."""
    return PAUSES_S[tries - 1] if tries <= len(PAUSES_S) else None


def find_channel_problem(channel: Channel) -> str:
    """Return why the latest tried delivery failed; empty if it arrived."""
    last = channel.deliveries.exclude(log=[]).order_by("-pk").first()
    return str(last.log[-1]["error"]) if last else ""
