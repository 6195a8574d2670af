"""The audit log: looked through, and taken away as a file."""

from typing import cast

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from orchestrator.accounts.audit import as_csv, as_json_lines, audit_of
from orchestrator.accounts.members import Member
from orchestrator.core.errors import NotFoundError
from orchestrator.web.access import for_member
from orchestrator.web.team_forms import AuditForm

ENTRIES_A_PAGE = 50
FORMATS = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "jsonl": ("application/jsonl; charset=utf-8", as_json_lines),
}


@for_member
def audit(request: HttpRequest, member: Member) -> HttpResponse:
    form = AuditForm(member, request.GET)
    pages = Paginator(audit_of(member, form.asked()), ENTRIES_A_PAGE)
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
def export(request: HttpRequest, member: Member, ending: str) -> HttpResponse:
    """What the page shows with the same filters, all of it."""
    if ending not in FORMATS:
        raise NotFoundError(f"the audit log is there as {' and '.join(FORMATS)}, not as {ending}")
    media, write = FORMATS[ending]
    rows = audit_of(member, AuditForm(member, request.GET).asked())
    name = f"audit-{member.team.slug}.{ending}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    answer = StreamingHttpResponse(write(rows), content_type=media, headers=headers)
    return cast(HttpResponse, answer)
