"""The team's settings: its tokens, its quotas, its audit log, and the choice of the team."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from cli.pitwall.units import format_bytes, format_duration
from orchestrator.accounts.audit import as_csv, as_json_lines, load_audit_entries
from orchestrator.accounts.members import Member
from orchestrator.accounts.memberships import leave_team
from orchestrator.accounts.selectors import (
    count_derived_tokens,
    load_member,
    load_token,
    load_tokens,
)
from orchestrator.accounts.services import create_token, revoke_token
from orchestrator.core.errors import NotFoundError
from orchestrator.retention.quota_use import load_team_use
from orchestrator.web.access import CHOSEN_TEAM, for_member
from orchestrator.web.confirmation_pages import ConfirmationPage, confirm_first
from orchestrator.web.team.forms import AuditForm, TokenForm

ENTRIES_A_PAGE = 50
AUDIT_FORMATS = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "jsonl": ("application/jsonl; charset=utf-8", as_json_lines),
}


@never_cache
@for_member
def settings(request: HttpRequest, member: Member) -> HttpResponse:
    """Show the settings. A new token is only in the response to the request that created it."""
    form = TokenForm(member, request.POST if request.method == "POST" else None)
    made = form.create(lambda: create_token(member=member, **form.build_arguments()))
    shown = form if made is None else TokenForm(member)
    context = {"form": shown, "made": made, "tokens": load_tokens(member)}
    return render(request, "team/settings.html", context, status=shown.status)


def _ask_revocation(request: HttpRequest, member: Member, token_id: UUID) -> ConfirmationPage:
    token = load_token(member, token_id)
    derived = count_derived_tokens(token)
    effects = ["Programs that use it are refused from now on. This cannot be undone."]
    if derived:
        effects.append(f"Tokens that were created with it are revoked too: {derived}.")
    return ConfirmationPage(
        question=f"Revoke the API token “{token.name}”?",
        effects=tuple(effects),
        button="Revoke token",
        back=reverse("settings"),
    )


@for_member
@confirm_first(_ask_revocation)
def revoke(request: HttpRequest, member: Member, token_id: UUID) -> HttpResponse:
    name = load_token(member, token_id).name
    revoke_token(member=member, token_id=token_id)
    messages.success(request, f"The token “{name}” was revoked.")
    return redirect("settings")


@for_member
@require_POST
def switch(request: HttpRequest, member: Member) -> HttpResponse:
    """Switch this session to another of the user's teams."""
    chosen = load_member(member.user, request.POST.get("team", "") or "-")
    request.session[CHOSEN_TEAM] = chosen.team.slug
    return redirect("overview")


def _ask_leaving(request: HttpRequest, member: Member) -> ConfirmationPage:
    return ConfirmationPage(
        question=f"Leave {member.team.name}?",
        effects=(
            "You no longer see anything of the team, and your API tokens of it are revoked.",
            "To come back, you need an invitation.",
        ),
        button="Leave team",
        back=reverse("members"),
    )


@for_member
@confirm_first(_ask_leaving)
def leave(request: HttpRequest, member: Member) -> HttpResponse:
    leave_team(member=member)
    request.session.pop(CHOSEN_TEAM, None)
    messages.success(request, f"You have left {member.team.name}.")
    return redirect("overview")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """`used` and `limit` as text, `limit` empty if there is none; `part` of it in per cent."""

    title: str
    used: str
    limit: str
    part: int
    what_to_do: str


@for_member
def quotas(request: HttpRequest, member: Member) -> HttpResponse:
    used = load_team_use(member.team)
    quotas = used.quotas
    uses = [
        _build_quota_use(
            "Hosts", used.hosts, quotas.hosts, str, "Retire hosts that are no longer needed."
        ),
        _build_quota_use(
            "Machine time in the queue",
            used.queued_s,
            quotas.queued_s,
            format_duration,
            "Cancel runs, or wait for them.",
        ),
        _build_quota_use(
            "Raw output and imports",
            used.storage_bytes,
            quotas.storage_bytes,
            format_bytes,
            "Shorten how long projects keep raw files, distributions and single trials, or remove "
            "imported results.",
        ),
        _build_quota_use(
            "Mirrors of repositories",
            used.mirrors_bytes,
            quotas.mirrors_bytes,
            format_bytes,
            "Remove large files from the history of repositories.",
        ),
    ]
    return render(request, "team/quotas.html", {"uses": uses, "quotas": quotas})


@for_member
def audit(request: HttpRequest, member: Member) -> HttpResponse:
    form = AuditForm(member, request.GET)
    pages = Paginator(load_audit_entries(member, form.build_filter()), ENTRIES_A_PAGE)
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "form": form,
        "page": pages.get_page(request.GET.get("page")),
        "query": query.urlencode(),
        "narrowed": any(query.values()),
    }
    return render(request, "team/audit.html", context, status=form.status)


@for_member
def export_audit(request: HttpRequest, member: Member, ending: str) -> HttpResponse:
    """Return all entries that match the filters of the page."""
    if ending not in AUDIT_FORMATS:
        raise NotFoundError(
            f"the audit log is available as {' and '.join(AUDIT_FORMATS)}, not as {ending}"
        )
    media, write = AUDIT_FORMATS[ending]
    rows = load_audit_entries(member, AuditForm(member, request.GET).build_filter())
    name = f"audit-{member.team.slug}.{ending}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    answer = StreamingHttpResponse(write(rows), content_type=media, headers=headers)
    return cast(HttpResponse, answer)


def _build_quota_use(
    title: str, used: float, limit: int | None, shown: Callable[[Any], str], what_to_do: str
) -> QuotaUse:
    part = 0 if limit is None else 100 if not limit else min(100, round(100 * used / limit))
    return QuotaUse(
        title=title,
        used=shown(used),
        limit="" if limit is None else shown(limit),
        part=part,
        what_to_do=what_to_do,
    )
