"""Views for people without an account: public projects, shared links, badges and charts."""

from http import HTTPStatus
from uuid import UUID

from ninja import Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, cut_page
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.sharing import (
    BadgesOut,
    NewShareLinkOut,
    PublicIn,
    PublicOut,
    ShareLinkIn,
    ShareLinkPage,
    build_badges_out,
    build_new_share_link_out,
    build_public_out,
    build_share_link_out,
)
from orchestrator.benchmarks.selectors import load_benchmark, load_project
from orchestrator.benchmarks.sharing import (
    create_share_link,
    load_share_links,
    revoke_share_link,
    set_public,
)
from orchestrator.histories.badges import build_badge_texts, build_chart_text, load_badge_series
from orchestrator.reports.shared_pages import resolve_shared_page

router = Router(tags=["sharing"])

PUBLIC = "/projects/{project}/public"


@router.get(PUBLIC, response=PublicOut, summary="Show whether a project is public")
def show_public(request: CallerRequest, project: Text) -> PublicOut:
    return build_public_out(load_project(request.auth.member, project))


@router.put(PUBLIC, response=PublicOut, summary="Make a project public, or private again")
def change_public(request: CallerRequest, project: Text, payload: PublicIn) -> PublicOut:
    """For maintainers. From now on everybody can see the results. Hosts, logs and definitions stay
    private."""
    member = request.auth.member
    set_public(member=member, project=load_project(member, project), public=payload.public)
    return build_public_out(load_project(member, project))


@router.get("/share-links", response=ShareLinkPage, summary="List shared links, newest first")
def list_share_links(
    request: CallerRequest,
    project: Text | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> ShareLinkPage:
    """Active links: neither revoked nor expired."""
    rows = load_share_links(request.auth.member)
    if project:
        rows = rows.filter(project__slug=project)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return ShareLinkPage(share_links=[build_share_link_out(each) for each in page], next=following)


@router.post("/share-links", response={201: NewShareLinkOut}, summary="Create a shared link")
def create_page_link(request: CallerRequest, payload: ShareLinkIn) -> Status[NewShareLinkOut]:
    """Everybody with the link can see this page and its parts, and nothing else."""
    member = request.auth.member
    shared = resolve_shared_page(member, payload.page)
    new = create_share_link(member=member, shared=shared, days=payload.days)
    return Status(HTTPStatus.CREATED, build_new_share_link_out(new))


@router.delete("/share-links/{uuid:link_id}", response={204: None}, summary="Revoke a shared link")
def revoke_link(request: CallerRequest, link_id: UUID) -> Status[None]:
    """The link stops working immediately."""
    revoke_share_link(member=request.auth.member, link_id=link_id)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.get(
    "/benchmarks/{project}/{benchmark}/badges",
    response=BadgesOut,
    summary="Show the addresses of badges and charts",
)
def show_badges(
    request: CallerRequest,
    project: Text,
    benchmark: Text,
    case: Text | None = None,
    host: Text | None = None,
    metric: Text | None = None,
    branch: Text | None = None,
) -> BadgesOut:
    """Omitted parameters default to the first measured case, host and metric. 404 if nothing was
    measured."""
    member = request.auth.member
    row = load_benchmark(member, benchmark, project)
    named = {"case": case, "host": host, "metric": metric, "branch": branch}
    query = {name: text for name, text in named.items() if text is not None}
    series = load_badge_series(member, row, query)
    return build_badges_out(
        row.project, *build_badge_texts(row, query), build_chart_text(series, query)
    )
