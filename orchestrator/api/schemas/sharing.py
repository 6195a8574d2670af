"""Views for people without an account: public projects, shared links, badges and charts."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Schema
from pydantic import Field, StringConstraints

from orchestrator.api.schemas.common import Flag, ShownOnce, Whole, build_web_url
from orchestrator.benchmarks.models import Project, ShareLink
from orchestrator.benchmarks.sharing import (
    MOST_DAYS,
    NewLink,
    build_public_address,
    build_shared_address,
)
from orchestrator.core.storable_text import StorableText
from orchestrator.histories.badges import BadgeText, ChartText

PageAddress = Annotated[StorableText, StringConstraints(min_length=1, max_length=2500)]


class PublicIn(Schema, extra="forbid"):
    public: Flag


class PublicOut(Schema):
    """`address` is the page of the project for everybody while it is public."""

    project: str
    public: bool
    public_since: datetime | None
    address: str


class ShareLinkIn(Schema, extra="forbid"):
    page: PageAddress = Field(
        description="The address of a run, a comparison, a report or a badge, as in `web_url` and "
        "`page` of other answers."
    )
    days: Annotated[Whole, Field(ge=1, le=MOST_DAYS)] = Field(
        30, description="The lifetime of the link."
    )


class ShareLinkOut(Schema):
    """`page` is the linked page for members; `prefix` is the beginning of its secret."""

    id: UUID
    project: str
    title: str
    page: str
    prefix: str
    created_by: str | None
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None


class ShareLinkPage(Schema):
    share_links: list[ShareLinkOut]
    next: str | None


class NewShareLinkOut(ShareLinkOut):
    """`url` is returned only once."""

    url: ShownOnce


class BadgeOut(Schema):
    """`address` shows the badge to everybody while the project is public. `page` shows it to
    members, and can be shared by a link."""

    title: str
    page: str
    address: str
    markdown: str
    html: str


class ChartOut(Schema):
    """A frame for other pages with the newest points, while the project is public."""

    page: str
    address: str
    html: str


class BadgesOut(Schema):
    """The text to copy into a README or a page."""

    public: bool
    value: BadgeOut
    verdict: BadgeOut
    chart: ChartOut


def build_public_out(project: Project) -> PublicOut:
    return PublicOut(
        project=project.slug,
        public=project.public_since is not None,
        public_since=project.public_since,
        address=build_public_address(project),
    )


def build_share_link_out(link: ShareLink) -> ShareLinkOut:
    page = build_web_url(link.page, **link.parameters)
    return ShareLinkOut(
        id=link.pk,
        project=link.project.slug,
        title=link.title,
        page=f"{page}?{link.query}" if link.query else page,
        prefix=link.prefix,
        created_by=link.created_by.get_username() if link.created_by else None,
        created_at=link.created_at,
        expires_at=link.expires_at,
        last_used_at=link.last_used_at,
    )


def build_new_share_link_out(new: NewLink) -> NewShareLinkOut:
    return NewShareLinkOut(
        **build_share_link_out(new.link).model_dump(), url=build_shared_address(new)
    )


def build_badges_out(
    project: Project, value: BadgeText, verdict: BadgeText, chart: ChartText
) -> BadgesOut:
    return BadgesOut(
        public=project.public_since is not None,
        value=_build_badge_out(value),
        verdict=_build_badge_out(verdict),
        chart=ChartOut(page=chart.path, address=chart.address, html=chart.html),
    )


def _build_badge_out(badge: BadgeText) -> BadgeOut:
    return BadgeOut(
        title=badge.title,
        page=badge.path,
        address=badge.address,
        markdown=badge.markdown,
        html=badge.html,
    )
