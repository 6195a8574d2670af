"""Channels and webhooks: where a team is notified of events, and the result of each delivery."""

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.alerts.channel_service import (
    create_channel,
    delete_channel,
    load_channel,
    load_channels,
    load_deliveries,
    load_delivery,
    replay,
    send_test,
    set_channel_enabled,
)
from orchestrator.alerts.deliveries import find_channel_problem
from orchestrator.core.dependents import DependentCount
from orchestrator.dispatch.wakeups import wake_channels
from orchestrator.web.access import for_member
from orchestrator.web.channels.forms import ChannelForm
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first

A_PAGE = 50


@never_cache
@for_member
def channels(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the channels.

    A new signing secret is only in the response to the request that created it.
    """
    form = ChannelForm(member, request.POST if request.method == "POST" else None)
    made = form.create(lambda: create_channel(member=member, new=form.build_request()))
    shown = form if made is None else ChannelForm(member)
    rows = [(each, find_channel_problem(each)) for each in load_channels(member)]
    context = {"form": shown, "made": made, "channels": rows}
    return render(request, "channels/list.html", context, status=shown.status)


@for_member
def channel(request: HttpRequest, member: Member, channel_id: UUID) -> HttpResponse:
    """Show a channel with its deliveries, newest first."""
    record = load_channel(member, channel_id)
    page = Paginator(load_deliveries(record), A_PAGE).get_page(request.GET.get("page"))
    return render(request, "channels/detail.html", {"channel": record, "page": page})


@for_member
def delivery(request: HttpRequest, member: Member, delivery_id: UUID) -> HttpResponse:
    """Show the sent message, and the answer to each try."""
    return render(
        request, "channels/delivery.html", {"delivery": load_delivery(member, delivery_id)}
    )


@for_member
@require_POST
def enable(request: HttpRequest, member: Member, channel_id: UUID) -> HttpResponse:
    """Turn a channel on or off according to `enabled`."""
    enabled = request.POST.get("enabled") == "true"
    set_channel_enabled(member=member, channel_id=channel_id, enabled=enabled)
    return redirect("channel", channel_id)


def _ask_deletion(request: HttpRequest, member: Member, channel_id: UUID) -> ConfirmationPage:
    channel = load_channel(member, channel_id)
    return ConfirmationPage(
        question=f"Delete the channel “{channel.name}”?",
        effects=(
            "Nothing more is sent to it. Deliveries that are due are not sent, and the log of its "
            "deliveries is deleted.",
            "To pause it, turn it off instead.",
        ),
        button="Delete channel",
        back=reverse("channel", args=[channel_id]),
        dependents=(DependentCount(title="Deliveries", count=load_deliveries(channel).count()),),
    )


@for_member
@confirm_first(_ask_deletion)
def delete(request: HttpRequest, member: Member, channel_id: UUID) -> HttpResponse:
    name = load_channel(member, channel_id).name
    delete_channel(member=member, channel_id=channel_id)
    messages.success(request, f"The channel “{name}” was deleted.")
    return redirect("channels")


@for_member
@require_POST
def test(request: HttpRequest, member: Member, channel_id: UUID) -> HttpResponse:
    made = send_test(member=member, channel_id=channel_id)
    wake_channels()
    messages.success(request, "The test is being sent. Reload this page to see the result.")
    return redirect("delivery", made.pk)


@for_member
@require_POST
def redeliver(request: HttpRequest, member: Member, delivery_id: UUID) -> HttpResponse:
    replay(member=member, delivery_id=delivery_id)
    wake_channels()
    messages.success(
        request, "The message is being redelivered. Reload this page to see the result."
    )
    return redirect("delivery", delivery_id)
