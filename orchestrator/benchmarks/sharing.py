"""What visitors without an account may see: public projects, and links to single pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.models import Project, ShareLink
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.core.issued_secrets import Kind, hash_secret, new_secret

MOST_DAYS = 366
#: Page that can be shared → the pages that belong to it.
SHAREABLE: Mapping[str, frozenset[str]] = {
    "run": frozenset({"run", "run-trials"}),
    "compare": frozenset({"compare", "compare-case"}),
    "report": frozenset({"report", "report-export"}),
    "badge-value": frozenset({"badge-value"}),
    "badge-verdict": frozenset({"badge-verdict"}),
}
_USE_RESOLUTION = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPage:
    """A page of a project in the form of its URL: see `ShareLink`."""

    project: Project
    page: str
    parameters: Mapping[str, str]
    query: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLink:
    """A new link; its secret is shown only once."""

    link: ShareLink
    secret: str


def load_public_project(team: str, slug: str) -> Project:
    """Raise NotFoundError for a private project as well, so that nobody learns that it exists."""
    project = (
        Project.objects.select_related("team")
        .filter(team__slug=team, slug=slug, public_since__isnull=False)
        .first()
    )
    if project is None:
        raise NotFoundError("there is no public project at this address; ask its team, or log in")
    return project


def build_public_address(project: Project) -> str:
    """Return the URL of a project for visitors, while it is public."""
    return f"{settings.BASE_URL}/public/{project.team.slug}/{project.slug}/"


def set_public(*, member: Member, project: Project, public: bool) -> None:
    """Make a project public, or private again."""
    member.require(Role.MAINTAINER, to="change the visibility of a project")
    with transaction.atomic():
        rows = Project.objects.filter(pk=project.pk, team=member.team)
        if not rows.filter(public_since__isnull=public).update(
            public_since=utc_now() if public else None
        ):
            return
        action = "project.made_public" if public else "project.made_private"
        record_audit(member=member, action=action, subject=project)


def create_share_link(*, member: Member, shared: SharedPage, days: int) -> NewLink:
    member.require(Role.MEMBER, to="share a page")
    if not 1 <= days <= MOST_DAYS:
        raise InvalidRequestError(
            f"expected 1 to {MOST_DAYS} days until the link expires, got {days}", field="days"
        )
    if len(shared.query) > 2000:
        raise InvalidRequestError("the page's address is too long to be shared", field="page")
    secret = new_secret(Kind.SHARED_LINK)
    with transaction.atomic():
        link = ShareLink.objects.create(
            project=shared.project,
            page=shared.page,
            parameters=dict(shared.parameters),
            query=shared.query,
            title=shared.title[:200],
            prefix=secret.beginning,
            digest=secret.digest,
            created_by=member.actor,
            expires_at=utc_now() + timedelta(days=days),
        )
        record_audit(member=member, action="share_link.created", subject=link)
    return NewLink(link=link, secret=secret.text)


@transaction.atomic
def revoke_share_link(*, member: Member, link_id: UUID) -> None:
    member.require(Role.MEMBER, to="revoke a shared link")
    link = load_share_link(member, link_id)
    ShareLink.objects.filter(pk=link.pk).update(revoked_at=utc_now())
    record_audit(member=member, action="share_link.revoked", subject=link)


def build_shared_address(new: NewLink) -> str:
    """Return the URL to pass on, which opens the shared page."""
    path = reverse(new.link.page, kwargs=new.link.parameters)
    return f"{settings.BASE_URL}/shared/{new.secret}{path}"


def load_share_links(member: Member) -> QuerySet[ShareLink]:
    """Return the team's links that are still valid, newest first."""
    return (
        ShareLink.objects.filter(member.sees("project"), revoked_at=None, expires_at__gt=utc_now())
        .select_related("project", "created_by")
        .order_by("-created_at")
    )


def load_share_link(member: Member, link_id: UUID) -> ShareLink:
    link = load_share_links(member).filter(pk=link_id).first()
    if link is None:
        raise NotFoundError.build_for_team("shared link")
    return link


def use_share_link(secret: str) -> ShareLink:
    """Return the link of a secret; NotFoundError if it is unknown, revoked or expired."""
    link = (
        ShareLink.objects.select_related("project__team")
        .filter(digest=hash_secret(secret), revoked_at=None, expires_at__gt=utc_now())
        .filter(project__deleted_at=None)
        .first()
    )
    if link is None:
        raise NotFoundError("this link has expired or was revoked; ask for a new one")
    _record_use(link, utc_now())
    return link


def _record_use(link: ShareLink, now: datetime) -> None:
    """Store the last use by the minute: a badge that is loaded often causes no write each time."""
    if link.last_used_at and now - link.last_used_at < _USE_RESOLUTION:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _USE_RESOLUTION)
    ShareLink.objects.filter(stale, pk=link.pk).update(last_used_at=now)
