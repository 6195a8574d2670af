"""A project's forge: its connection, received webhooks, and requests that wait for an approval."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.selectors import load_project
from orchestrator.core.errors import PitwallError
from orchestrator.dispatch.wakeups import wake_forges
from orchestrator.forges.selectors import (
    find_connection,
    load_connection,
    load_connection_by_id,
    load_requests,
    load_webhooks,
    request_for,
)
from orchestrator.forges.services import approve, decline, disconnect, renew_secret, save_connection
from orchestrator.forges.webhooks import MOST_BYTES, receive
from orchestrator.web.access import for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.errors import find_status
from orchestrator.web.forges.forms import ForgeForm, build_initial_connection

#: The page shows the latest; the API has all.
MOST_REQUESTS, MOST_INCOMING = 50, 20


@never_cache
@for_member
def forge(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    """Show the connection. A new secret is only in the response to the request that created it."""
    project = load_project(member, slug)
    posted = request.POST if request.method == "POST" else None
    form = ForgeForm(
        member, posted, initial=build_initial_connection(find_connection(member, project))
    )
    saved = form.create(
        lambda: save_connection(member=member, project=project, new=form.build_new_connection())
    )
    if saved is None or saved.secret:
        return _page(request, member, project, form, saved.secret if saved else "")
    messages.success(request, "Saved.")
    return redirect("project-forge", slug)


def _ask_new_secret(request: HttpRequest, member: Member, slug: str) -> ConfirmationPage:
    connection = load_connection(member, load_project(member, slug))
    return ConfirmationPage(
        question="Generate a new webhook secret?",
        effects=(
            f"Webhooks of {connection.repository} are refused until you enter the new secret "
            "on the forge.",
        ),
        button="Generate secret",
        back=reverse("project-forge", args=[slug]),
    )


@never_cache
@for_member
@confirm_first(_ask_new_secret)
def new_secret(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = load_project(member, slug)
    secret = renew_secret(member=member, project=project)
    form = ForgeForm(member, initial=build_initial_connection(find_connection(member, project)))
    return _page(request, member, project, form, secret)


def _ask_disconnection(request: HttpRequest, member: Member, slug: str) -> ConfirmationPage:
    connection = load_connection(member, load_project(member, slug))
    return ConfirmationPage(
        question=f"Disconnect {connection.repository}?",
        effects=(
            "Pitwall no longer receives its pushes, and measures and comments no pull requests.",
            "The token and the webhook secret are deleted. Runs and results remain.",
        ),
        button="Disconnect",
        back=reverse("project-forge", args=[slug]),
    )


@for_member
@confirm_first(_ask_disconnection)
def remove(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    disconnect(member=member, project=load_project(member, slug))
    return redirect("project-forge", slug)


@for_member
@require_POST
def answer(request: HttpRequest, member: Member, request_id: UUID) -> HttpResponse:
    """Approve the commit that the page showed, or decline it, according to `answer`."""
    slug = request_for(member, request_id).pull.connection.project.slug
    if request.POST.get("answer") == "approve":
        approve(member=member, request_id=request_id, sha=request.POST.get("sha", ""))
        messages.success(request, "Approved. The run will start shortly.")
    else:
        decline(member=member, request_id=request_id)
    wake_forges()
    return redirect("project-forge", slug)


@csrf_exempt
@require_POST
def hook(request: HttpRequest, connection_id: UUID) -> HttpResponse:
    """Receive a webhook. The forge is no member: the signature over the body authenticates it."""
    body = request.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        return _build_text_response(f"a payload may have {MOST_BYTES} bytes at most", 413)
    try:
        outcome = receive(load_connection_by_id(connection_id), request.headers, body)
    except PitwallError as error:
        return _build_text_response(str(error), find_status(error)[0])
    wake_forges()
    return _build_text_response(outcome, 200)


def _page(
    request: HttpRequest, member: Member, project: Project, form: ForgeForm, secret: str
) -> HttpResponse:
    connection = find_connection(member, project)
    address = ""
    if connection is not None:
        address = settings.BASE_URL + reverse("forge-hook", args=[connection.pk])
    context = {
        "project": project,
        "connection": connection,
        "form": form,
        "secret": secret,
        "address": address,
        "requests": load_requests(connection)[:MOST_REQUESTS] if connection else (),
        "webhooks": load_webhooks(connection)[:MOST_INCOMING] if connection else (),
    }
    return render(request, "forges/detail.html", context, status=form.status)


def _build_text_response(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
