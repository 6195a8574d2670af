"""Channels and their deliveries. The address of a channel is a secret for most chat services:
answers show an abbreviated `target`."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import Field

from orchestrator.alerts.channel_service import EVENTS, CreatedChannel, NewChannel
from orchestrator.alerts.deliveries import find_channel_problem
from orchestrator.alerts.models import (
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    Digest,
    Event,
    EventKind,
)
from orchestrator.api.schemas.common import ShownOnce, Text, build_api_url, build_web_url
from orchestrator.core.storable_text import StorableText

ChosenEvent = StrEnum("ChosenEvent", {kind.name: str(kind) for kind in EVENTS})  # type: ignore[misc]


class ChannelIn(Schema, extra="forbid"):
    """`target`: the address of a webhook, or for `email` up to 20 addresses separated by commas.
    The `kind` webhook sends each event immediately and has no other `digest`."""

    name: Annotated[Text, Field(max_length=100)]
    kind: ChannelKind
    target: Annotated[StorableText, Field(min_length=1, max_length=2000)]
    events: list[ChosenEvent] = Field(min_length=1, max_length=20)
    digest: Digest = Digest.IMMEDIATE

    def new_channel(self) -> NewChannel:
        given = self.model_dump(mode="json", exclude={"events", "target"})
        events = tuple(str(each) for each in self.events)
        return NewChannel(**given, target=self.target.strip(), events=events)


class ChannelOut(Schema):
    """`problem`: why the newest attempted delivery failed; null if it succeeded."""

    id: UUID
    name: str
    kind: ChannelKind
    target: str
    events: list[ChosenEvent]
    digest: Digest
    enabled: bool
    problem: str | None
    created_by: str | None
    created_at: datetime
    url: str
    web_url: str


class NewChannelOut(ChannelOut):
    """`secret` signs the messages to a webhook; other kinds have none."""

    secret: ShownOnce


class ChannelPage(Schema):
    channels: list[ChannelOut]
    next: str | None


class EventOut(Schema):
    """An event that was sent; `web_url` is the page of the run or the alert."""

    id: UUID
    event: EventKind
    at: datetime
    title: str
    web_url: str


class TryOut(Schema):
    """`status` and the beginning of the `answer`, if there was one; `error` is null if the message
    was accepted."""

    at: datetime
    status: int | None
    ms: int
    error: str | None
    answer: str


class DeliveryOut(Schema):
    """One message: a single event, or the digest of several. `next_at`: the next attempt of a
    waiting message. `tried`: the number of attempts; `last_try` is null before the first."""

    id: UUID
    channel: UUID
    state: DeliveryState
    events: list[EventOut]
    tried: int
    last_try: TryOut | None
    next_at: datetime | None
    created_at: datetime
    url: str
    web_url: str


class DeliveryDetailOut(DeliveryOut):
    """`headers` and `body` of the last attempt; empty before the first."""

    tries: list[TryOut]
    headers: dict[str, str]
    body: str


class DeliveryPage(Schema):
    deliveries: list[DeliveryOut]
    next: str | None


def build_channel_out(channel: Channel) -> ChannelOut:
    return ChannelOut(**_build_channel_fields(channel))


def build_new_channel_out(made: CreatedChannel) -> NewChannelOut:
    return NewChannelOut(**_build_channel_fields(made.channel), secret=made.secret or None)


def build_delivery_out(delivery: Delivery) -> DeliveryOut:
    return DeliveryOut(**_build_delivery_fields(delivery))


def build_delivery_detail_out(delivery: Delivery) -> DeliveryDetailOut:
    return DeliveryDetailOut(
        **_build_delivery_fields(delivery),
        tries=[_build_try_out(each) for each in delivery.log],
        headers=delivery.headers,
        body=delivery.body,
    )


def _build_channel_fields(channel: Channel) -> dict[str, Any]:
    named = ("id", "name", "kind", "target", "events", "digest", "enabled", "created_at")
    by = channel.created_by
    return {
        **{name: getattr(channel, name) for name in named},
        "problem": find_channel_problem(channel) or None,
        "created_by": by.get_username() if by else None,
        "url": build_api_url(f"channels/{channel.pk}"),
        "web_url": build_web_url("channel", channel.pk),
    }


def _build_delivery_fields(delivery: Delivery) -> dict[str, Any]:
    waits = delivery.state == DeliveryState.WAITING
    return {
        "id": delivery.pk,
        "channel": delivery.channel_id,
        "state": delivery.state,
        "events": [_build_event_out(each) for each in delivery.events.all()],
        "tried": len(delivery.log),
        "last_try": _build_try_out(delivery.log[-1]) if delivery.log else None,
        "next_at": delivery.next_at if waits else None,
        "created_at": delivery.created_at,
        "url": build_api_url(f"deliveries/{delivery.pk}"),
        "web_url": build_web_url("delivery", delivery.pk),
    }


def _build_event_out(event: Event) -> EventOut:
    return EventOut(
        id=event.pk,
        event=EventKind(event.kind),
        at=event.at,
        title=event.data["title"],
        web_url=event.data["url"],
    )


def _build_try_out(noted: Mapping[str, Any]) -> TryOut:
    return TryOut(**{**noted, "error": noted["error"] or None})
