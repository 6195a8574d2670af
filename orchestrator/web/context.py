"""Context of the frame of every page: the member, the team and the navigation."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.urls import get_script_prefix, reverse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.selectors import load_memberships
from orchestrator.alerts.selectors import count_open_alerts
from orchestrator.core.errors import PermissionRefusedError
from orchestrator.web.access import get_member, get_visitor

#: Items of the navigation that visitors of a public project see.
_FOR_VISITORS = frozenset({"overview", "runs", "compare", "history", "reports"})


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
        ("settings", "token", "member", "invitation", "audit", "channel", "delivery", "shar"),
    ),
)


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Return `member`, `navigation` and `may_write` for the templates.

    For a visitor return `visitor` and the `project`, with its open pages.
    """
    if hasattr(request, "pitwall_place"):
        return _build_visitor_context(request)
    member = _find_member(request)
    if member is None:
        return {"member": None, "navigation": ()}
    match = getattr(request, "resolver_match", None)
    here = (match.url_name or "") if match else ""
    return {
        "member": member,
        "navigation": tuple(
            NavigationItem(
                url=_build_url(name, get_script_prefix()),
                title=title,
                active=here.startswith(prefixes),
                count=count_open_alerts(member.team) if name == "alerts" else 0,
            )
            for name, title, prefixes in _ITEMS
        ),
        "may_write": member.has(Role.MEMBER),
        "may_administrate": member.has(Role.MAINTAINER),
        "memberships": load_memberships(member.user),
    }


@cache
def _build_url(name: str, prefix: str) -> str:
    """Return the address of a page behind a prefix, cached since every page needs it."""
    return reverse(name)


def _build_visitor_context(request: HttpRequest) -> dict[str, Any]:
    visitor = get_visitor(request)
    match = getattr(request, "resolver_match", None)
    here = (match.url_name or "") if match else ""
    shown = _ITEMS if visitor is not None and visitor.page is None else ()
    return {
        "member": None,
        "visiting": True,
        "visitor": visitor,
        "visited": getattr(request, "pitwall_project", None),
        "navigation": tuple(
            NavigationItem(
                url=_build_url(name, get_script_prefix()),
                title=title,
                active=here.startswith(prefixes),
            )
            for name, title, prefixes in shown
            if name in _FOR_VISITORS
        ),
    }


def _find_member(request: HttpRequest) -> Member | None:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    try:
        return get_member(request)
    except PermissionRefusedError:
        return None
