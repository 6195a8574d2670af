"""What every page's frame shows: the member, the team and the navigation."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.selectors import teams_of
from orchestrator.alerts.selectors import open_alerts
from orchestrator.core.errors import PermissionRefusedError
from orchestrator.web.access import member_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NavigationItem:
    url: str
    title: str
    active: bool
    count: int = 0


#: (url name, title, prefixes of the url names that belong to it)
_ITEMS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("overview", "Overview", ("overview",)),
    ("runs", "Runs", ("run", "trial", "validity")),
    ("compare", "Compare", ("compare",)),
    ("history", "History", ("history",)),
    ("alerts", "Alerts", ("alert",)),
    ("reports", "Reports", ("report", "reference")),
    ("benchmarks", "Benchmarks", ("benchmark", "project", "catalogue")),
    ("hosts", "Hosts", ("host", "profile")),
    ("load-tools", "Load tools", ("load-tools",)),
    ("schedules", "Schedules", ("schedule",)),
    (
        "settings",
        "Settings",
        ("settings", "token", "member", "invitation", "audit", "channel", "delivery"),
    ),
)


def navigation(request: HttpRequest) -> dict[str, Any]:
    """`member`, `navigation` and `may_write` for the templates; nothing for a visitor."""
    member = _member(request)
    if member is None:
        return {"member": None, "navigation": ()}
    match = getattr(request, "resolver_match", None)
    here = (match.url_name or "") if match else ""
    return {
        "member": member,
        "navigation": tuple(
            NavigationItem(
                url=_url(name),
                title=title,
                active=here.startswith(prefixes),
                count=open_alerts(member.team) if name == "alerts" else 0,
            )
            for name, title, prefixes in _ITEMS
        ),
        "may_write": member.has(Role.MEMBER),
        "may_administrate": member.has(Role.MAINTAINER),
        "memberships": teams_of(member.user),
    }


@cache
def _url(name: str) -> str:
    """The address of a page of the navigation; every page has them all."""
    return reverse(name)


def _member(request: HttpRequest) -> Member | None:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    try:
        return member_of(request)
    except PermissionRefusedError:
        return None
