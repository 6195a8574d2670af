"""Channels: where events of a team are sent, and the result of each delivery."""

from http import HTTPStatus
from uuid import UUID

from django.http import HttpResponse
from ninja import Router
from ninja.responses import Status

from orchestrator.alerts import channel_service
from orchestrator.alerts.models import DeliveryState
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, cut_page
from orchestrator.api.schemas.channels import (
    ChannelIn,
    ChannelOut,
    ChannelPage,
    DeliveryDetailOut,
    DeliveryPage,
    NewChannelOut,
    build_channel_out,
    build_delivery_detail_out,
    build_delivery_out,
    build_new_channel_out,
)
from orchestrator.api.schemas.schedules import EnabledIn
from orchestrator.dispatch.wakeups import wake_channels

router = Router(tags=["channels"])

CHANNEL = "/channels/{uuid:channel_id}"
DELIVERY = "/deliveries/{uuid:delivery_id}"


@router.get("/channels", response=ChannelPage, summary="List channels, newest first")
def list_channels(request: CallerRequest, cursor: Cursor = None, limit: Limit = 50) -> ChannelPage:
    rows = channel_service.load_channels(request.auth.member)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return ChannelPage(channels=[build_channel_out(each) for each in page], next=following)


@router.post("/channels", response={201: NewChannelOut}, summary="Create a channel")
def create_channel(
    request: CallerRequest, response: HttpResponse, payload: ChannelIn
) -> Status[NewChannelOut]:
    """For maintainers. 409 if the name is taken. The `target` is never shown again in full."""
    made = channel_service.create_channel(member=request.auth.member, new=payload.new_channel())
    answer = build_new_channel_out(made)
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED, answer)


@router.get(CHANNEL, response=ChannelOut, summary="Show a channel")
def show_channel(request: CallerRequest, channel_id: UUID) -> ChannelOut:
    return build_channel_out(channel_service.load_channel(request.auth.member, channel_id))


@router.patch(CHANNEL, response=ChannelOut, summary="Turn a channel on or off")
def enable_channel(request: CallerRequest, channel_id: UUID, payload: EnabledIn) -> ChannelOut:
    """For maintainers. Waiting deliveries stay while the channel is off."""
    member = request.auth.member
    channel_service.set_channel_enabled(
        member=member, channel_id=channel_id, enabled=payload.enabled
    )
    return build_channel_out(channel_service.load_channel(member, channel_id))


@router.delete(CHANNEL, response={204: None}, summary="Delete a channel")
def delete_channel(request: CallerRequest, channel_id: UUID) -> Status[None]:
    """For maintainers. Its deliveries are deleted too."""
    channel_service.delete_channel(member=request.auth.member, channel_id=channel_id)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.post(CHANNEL + "/test", response={201: DeliveryDetailOut}, summary="Send a test")
def test_channel(
    request: CallerRequest, response: HttpResponse, channel_id: UUID
) -> Status[DeliveryDetailOut]:
    """The delivery has the result a moment later. 409 if the channel is off."""
    member = request.auth.member
    made = channel_service.send_test(member=member, channel_id=channel_id)
    wake_channels()
    answer = build_delivery_detail_out(channel_service.load_delivery(member, made.pk))
    response["Location"] = answer.url
    return Status(HTTPStatus.CREATED, answer)


@router.get(CHANNEL + "/deliveries", response=DeliveryPage, summary="List deliveries, newest first")
def list_deliveries(
    request: CallerRequest,
    channel_id: UUID,
    state: DeliveryState | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> DeliveryPage:
    """Deliveries are kept for 30 days."""
    rows = channel_service.load_deliveries(
        channel_service.load_channel(request.auth.member, channel_id)
    )
    if state:
        rows = rows.filter(state=state)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return DeliveryPage(deliveries=[build_delivery_out(each) for each in page], next=following)


@router.get(DELIVERY, response=DeliveryDetailOut, summary="Show a delivery")
def show_delivery(request: CallerRequest, delivery_id: UUID) -> DeliveryDetailOut:
    """The message, and the answer to each attempt."""
    return build_delivery_detail_out(
        channel_service.load_delivery(request.auth.member, delivery_id)
    )


@router.post(
    DELIVERY + "/redeliver", response={202: DeliveryDetailOut}, summary="Redeliver a message"
)
def deliver_again(request: CallerRequest, delivery_id: UUID) -> Status[DeliveryDetailOut]:
    """With the same id, so that a receiver can detect the repeat. 409 while the delivery waits."""
    member = request.auth.member
    channel_service.replay(member=member, delivery_id=delivery_id)
    wake_channels()
    answer = build_delivery_detail_out(channel_service.load_delivery(member, delivery_id))
    return Status(HTTPStatus.ACCEPTED, answer)
