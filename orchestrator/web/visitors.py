"""The URLs of visitors: pages of a public project, and shared pages.

`/public/TEAM/PROJECT/…` and `/shared/SECRET/…` serve Pitwall's normal URLs behind a prefix, as if
it were installed there: every link of a page stays behind the prefix. Before a view runs, this
module decides what the visitor may open. The visitor sees the rows of that project only.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import get_script_prefix, set_script_prefix

from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import ShareLink
from orchestrator.benchmarks.sharing import SHAREABLE, load_public_project, use_share_link
from orchestrator.core.errors import NotFoundError
from orchestrator.web.comparisons.view_options import ViewOptions
from orchestrator.web.errors import render_error_page
from orchestrator.web.middleware import GetResponse
from orchestrator.web.visitor_links import is_open

_PUBLIC = re.compile(r"/public/(?P<team>[-\w]+)/(?P<project>[-\w]+)(?=/)")
_SHARED = re.compile(r"/shared/(?P<secret>pws_[-\w]+)(?=/)")
#: Page → its view options in the query; all other parameters stay as they were shared.
_VIEW_OPTIONS: Mapping[str, frozenset[str]] = {
    "run": frozenset({"cases", "page", "invalid"}),
    "compare": frozenset(
        {*(each.name for each in fields(ViewOptions)), "case_key", "host_id", "format"}
    ),
    "report": frozenset({"format"}),
}


def visiting(get_response: GetResponse) -> GetResponse:
    """Middleware: remove the prefix, and restrict visitors to open pages."""

    def middleware(request: HttpRequest) -> HttpResponse:
        match = _PUBLIC.match(request.path_info) or _SHARED.match(request.path_info)
        if match is None:
            return get_response(request)
        before = get_script_prefix()
        place = f"{before.rstrip('/')}{match[0]}/"
        request.pitwall_place = (place, match.groupdict())  # type: ignore[attr-defined]
        request.path_info = request.path_info[match.end() :]
        set_script_prefix(place)
        try:
            response = get_response(request)
            response.headers["X-Robots-Tag"] = "noindex"
            return response
        finally:
            set_script_prefix(before)

    middleware.process_view = _admit_visitor  # type: ignore[attr-defined]
    return middleware


def _admit_visitor(
    request: HttpRequest, view: Callable[..., HttpResponse], args: Any, given: Mapping[str, Any]
) -> HttpResponse | None:
    place = getattr(request, "pitwall_place", None)
    if place is None:
        return None
    try:
        visitor = _identify_visitor(request, *place)
        request.pitwall_visitor = visitor  # type: ignore[attr-defined]
        match = request.resolver_match
        name = (match.url_name or "") if match else ""
        if request.method not in ("GET", "HEAD") or not is_open(visitor, view, name, given):
            raise NotFoundError("visitors do not see this page; log in as a member of the team")
    except NotFoundError as error:
        return render_error_page(request, error)
    return None


def _identify_visitor(request: HttpRequest, place: str, named: Mapping[str, str]) -> Visitor:
    if "secret" not in named:
        project = load_public_project(named["team"], named["project"])
        request.pitwall_project = project  # type: ignore[attr-defined]
        return Visitor(project=project.pk, place=place)
    link = use_share_link(named["secret"])
    request.pitwall_project = link.project  # type: ignore[attr-defined]
    request.GET = _build_shared_query(request.GET, link)  # type: ignore[assignment]
    return Visitor(
        project=link.project_id,
        place=place,
        page=(link.page, link.parameters),
        parts=SHAREABLE.get(link.page, frozenset()),
    )


def _build_shared_query(params: QueryDict, link: ShareLink) -> QueryDict:
    """Return the shared query; a visitor may change only its view options."""
    query = QueryDict(link.query, mutable=True)
    options = _VIEW_OPTIONS.get(link.page, frozenset())
    for name, values in params.lists():
        if name in options:
            query.setlist(name, values)
    return query
