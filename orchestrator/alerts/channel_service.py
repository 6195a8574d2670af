"""Writes of channels by members, and the reads of their pages."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Prefetch, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.alerts.models import (
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    Digest,
    Event,
    EventKind,
)
from orchestrator.alerts.payloads import build_payload, test_data
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError
from orchestrator.core.ids import new_id
from orchestrator.core.issued_secrets import Kind, new_secret
from orchestrator.fleet.vault import seal
from orchestrator.transport.http import ForbiddenAddressError, check_web_address, refuse_internal

MOST_ADDRESSES = 20
#: The kinds of events that a member can choose.
EVENTS = tuple(kind for kind in EventKind if kind != EventKind.TEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChannel:
    """`target`: a web address, or e-mail addresses separated by commas."""

    name: str
    kind: str
    target: str
    events: tuple[str, ...]
    digest: str = Digest.IMMEDIATE


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedChannel:
    """`secret` signs the requests to a webhook: shown once. Empty for all other kinds."""

    channel: Channel
    secret: str


def load_channels(member: Member) -> QuerySet[Channel]:
    return Channel.objects.filter(team=member.team).select_related("created_by")


def load_channel(member: Member, channel_id: UUID) -> Channel:
    channel = load_channels(member).filter(pk=channel_id).first()
    if channel is None:
        raise NotFoundError.build_for_team("channel")
    return channel


def load_deliveries(channel: Channel) -> QuerySet[Delivery]:
    """Return the deliveries, newest first, with their events."""
    events = Prefetch("events", Event.objects.order_by("at", "pk"))
    return channel.deliveries.prefetch_related(events).order_by("-pk")


def load_delivery(member: Member, delivery_id: UUID) -> Delivery:
    rows = Delivery.objects.filter(channel__team=member.team).select_related("channel")
    delivery = rows.prefetch_related("events").filter(pk=delivery_id).first()
    if delivery is None:
        raise NotFoundError(
            "there is no such delivery in this team; deliveries are deleted after 30 days"
        )
    return delivery


def create_channel(*, member: Member, new: NewChannel) -> CreatedChannel:
    member.require(Role.MAINTAINER, to="create a channel")
    _check(new)
    by_mail = new.kind == ChannelKind.EMAIL
    addresses = _parse_addresses(new.target) if by_mail else []
    target = ", ".join(addresses) if by_mail else _check_host(new.target)
    secret = new_secret(Kind.CHANNEL_WEBHOOK).text if new.kind == ChannelKind.WEBHOOK else ""
    try:
        with transaction.atomic():
            channel = Channel(
                team=member.team,
                name=new.name.strip()[:100],
                kind=new.kind,
                target=target[:300],
                addresses=addresses,
                events=list(dict.fromkeys(new.events)),
                digest=new.digest,
                created_by=member.actor,
                created_at=utc_now(),
            )
            if not by_mail:
                channel.sealed_url = seal(channel, "sealed_url", new.target)
            if secret:
                channel.sealed_secret = seal(channel, "sealed_secret", secret)
            channel.save(force_insert=True)
            record_audit(member=member, action="channel.created", subject=channel)
    except IntegrityError as error:
        problem = f"the team already has a channel named {new.name}; choose another name"
        raise ConflictError(problem) from error
    return CreatedChannel(channel=channel, secret=secret)


@transaction.atomic
def set_channel_enabled(*, member: Member, channel_id: UUID, enabled: bool) -> None:
    member.require(Role.MAINTAINER, to="change a channel")
    channel = load_channel(member, channel_id)
    Channel.objects.filter(pk=channel.pk).update(enabled=enabled)
    action = "channel.enabled" if enabled else "channel.disabled"
    record_audit(member=member, action=action, subject=channel)


@transaction.atomic
def delete_channel(*, member: Member, channel_id: UUID) -> None:
    """Delete a channel with its deliveries."""
    member.require(Role.MAINTAINER, to="delete a channel")
    channel = load_channel(member, channel_id)
    record_audit(member=member, action="channel.deleted", subject=channel)
    channel.delete()


@transaction.atomic
def send_test(*, member: Member, channel_id: UUID) -> Delivery:
    """Queue a test message. It is sent at once, even if the channel has a digest."""
    member.require(Role.MEMBER, to="test a channel")
    channel = load_channel(member, channel_id)
    if not channel.enabled:
        raise ConflictError(f"the channel {channel.name} is off; turn it on first")
    now, event_id = utc_now(), new_id()
    event = Event.objects.create(
        id=event_id,
        team=member.team,
        kind=EventKind.TEST,
        subject=event_id,
        data=build_payload(EventKind.TEST, member.team, now, event_id, test_data(member.team)),
        at=now,
    )
    delivery = Delivery.objects.create(channel=channel, next_at=now, created_at=now)
    delivery.events.add(event)
    record_audit(member=member, action="channel.tested", subject=channel)
    return delivery


@transaction.atomic
def replay(*, member: Member, delivery_id: UUID) -> Delivery:
    """Send a delivery again with the same id, so that a receiver can recognise it."""
    member.require(Role.MEMBER, to="replay a delivery")
    delivery = load_delivery(member, delivery_id)
    ended = Delivery.objects.filter(pk=delivery.pk).exclude(state=DeliveryState.WAITING)
    if not ended.update(state=DeliveryState.WAITING, tries=0, next_at=utc_now()):
        raise ConflictError("this delivery is still waiting for its next attempt")
    record_audit(member=member, action="delivery.replayed", subject=delivery.pk)
    return delivery


def _check(new: NewChannel) -> None:
    if not new.name.strip():
        raise InvalidRequestError("enter a name for the channel", field="name")
    if new.kind not in ChannelKind.values:
        raise InvalidRequestError(f"expected one of {', '.join(ChannelKind.values)}", field="kind")
    if not new.events or not set(new.events) <= set(EVENTS):
        raise InvalidRequestError("choose at least one event", field="events")
    if new.digest not in Digest.values:
        raise InvalidRequestError(f"expected one of {', '.join(Digest.values)}", field="digest")
    if new.kind == ChannelKind.WEBHOOK and new.digest != Digest.IMMEDIATE:
        raise InvalidRequestError(
            "a webhook sends each event immediately and has no digest", field="digest"
        )
    if new.kind == ChannelKind.EMAIL and not settings.EMAIL_HOST:
        raise InvalidRequestError(
            "Pitwall has no mail server: the administrator has to set PITWALL_SMTP_HOST",
            field="kind",
        )


def _check_host(url: str) -> str:
    host = check_web_address(url, field="target")
    try:
        refuse_internal(url, allowed=settings.ALLOWED_INTERNAL_NETWORKS)
    except ForbiddenAddressError as error:
        raise InvalidRequestError(str(error), field="target") from error
    return host


def _parse_addresses(text: str) -> list[str]:
    addresses = [word.strip() for word in text.replace(";", ",").split(",") if word.strip()]
    for each in addresses:
        try:
            validate_email(each)
        except ValidationError as error:
            raise InvalidRequestError(f"{each} is not an e-mail address", field="target") from error
    if not 1 <= len(addresses) <= MOST_ADDRESSES:
        raise InvalidRequestError(
            f"expected 1 to {MOST_ADDRESSES} addresses, separated by commas", field="target"
        )
    return addresses
