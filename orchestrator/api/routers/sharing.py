"""Views for people without an account: public projects, shared links, badges and charts."""

from http import HTTPStatus
from uuid import UUID

from ninja import Router
from ninja.responses import Status

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, page_of
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.sharing import (
    BadgesOut,
    NewShareLinkOut,
    PublicIn,
    PublicOut,
    ShareLinkIn,
    ShareLinkPage,
    badges_out,
    new_share_link_out,
    public_out,
    share_link_out,
)
from orchestrator.benchmarks.selectors import benchmark_for, project_for
from orchestrator.benchmarks.sharing import (
    create_share_link,
    revoke_share_link,
    set_public,
    share_links_of,
)
from orchestrator.histories.badges import asked_series, badge_texts, chart_text
from orchestrator.reports.shared_pages import shared_page

router = Router(tags=["sharing"])

PUBLIC = "/projects/{project}/public"


@router.get(PUBLIC, response=PublicOut, summary="Show whether a project is public")
def show_public(request: CallerRequest, project: Text) -> PublicOut:
    return public_out(project_for(request.auth.member, project))


@router.put(PUBLIC, response=PublicOut, summary="Make a project public, or private again")
def change_public(request: CallerRequest, project: Text, payload: PublicIn) -> PublicOut:
    """For maintainers. From now on everybody can see the results. Hosts, logs and definitions stay
    private."""
    member = request.auth.member
    set_public(member=member, project=project_for(member, project), public=payload.public)
    return public_out(project_for(member, project))


@router.get("/share-links", response=ShareLinkPage, summary="List shared links, newest first")
def list_share_links(
    request: CallerRequest,
    project: Text | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> ShareLinkPage:
    """Active links: neither revoked nor expired."""
    rows = share_links_of(request.auth.member)
    if project:
        rows = rows.filter(project__slug=project)
    found, following = page_of(rows, after=cursor, limit=limit)
    return ShareLinkPage(share_links=[share_link_out(each) for each in found], next=following)


@router.post("/share-links", response={201: NewShareLinkOut}, summary="Create a shared link")
def create_share_link_of(request: CallerRequest, payload: ShareLinkIn) -> Status[NewShareLinkOut]:
    """Everybody with the link can see this page and its parts, and nothing else."""
    member = request.auth.member
    shared = shared_page(member, payload.page)
    new = create_share_link(member=member, shared=shared, days=payload.days)
    return Status(HTTPStatus.CREATED, new_share_link_out(new))


@router.delete("/share-links/{uuid:link_id}", response={204: None}, summary="Revoke a shared link")
def revoke_link(request: CallerRequest, link_id: UUID) -> Status[None]:
    """From now on the link does not work."""
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
    found = benchmark_for(member, benchmark, project)
    named = {"case": case, "host": host, "metric": metric, "branch": branch}
    asked = {name: text for name, text in named.items() if text is not None}
    series = asked_series(member, found, asked)
    return badges_out(found.project, *badge_texts(found, asked), chart_text(series, asked))
