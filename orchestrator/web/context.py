"""Context of the frame of every page: the member, the team and the navigation."""

from collections.abc import Callable
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

#: Pages in the navigation and its tabs that visitors of a public project see.
_FOR_VISITORS = frozenset({"overview", "runs", "compare", "history", "reports"})
_FOR_ADMINISTRATORS = frozenset({"audit", "deleted"})
#: The documentation is the same for everybody, and has no copy below the address of a visitor.
HELP = "/docs/"
_HELP_PAGES = ("document", "openapi", "api-docs")


@dataclass(frozen=True, slots=True, kw_only=True)
class NavigationItem:
    url: str
    title: str
    active: bool
    count: int = 0
    icon: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """An entry of the navigation: its page by URL name, and the tabs above its lists.

    `prefixes` are those of the URL names that belong to it. A wide screen shows the `icon` instead
    of the title.
    """

    name: str
    title: str
    prefixes: tuple[str, ...]
    tabs: tuple[tuple[str, str], ...] = ()
    icon: str = ""


#: The groups of the navigation: what was measured, with what, and all else.
_GROUPS: tuple[tuple[Section, ...], ...] = (
    (
        Section(name="overview", title="Overview", prefixes=("overview",)),
        Section(
            name="runs",
            title="Runs",
            prefixes=(
                "run", "queue", "trial", "validity", "schedule", "backfill", "import", "build-log",
            ),
            tabs=(
                ("runs", "Runs"),
                ("queue", "Queue"),
                ("schedules", "Schedules"),
                ("backfills", "Backfills"),
                ("imports", "Imports"),
            ),
        ),
        Section(
            name="compare",
            title="Compare",
            prefixes=("compare", "report", "reference"),
            tabs=(
                ("compare", "Commits"),
                ("reports", "Reports"),
                ("references", "Reference results"),
            ),
        ),
        Section(name="history", title="History", prefixes=("history",)),
        Section(name="alerts", title="Alerts", prefixes=("alert",)),
    ),
    (
        Section(
            name="benchmarks",
            title="Benchmarks",
            prefixes=("benchmark", "project", "catalogue", "load-tools"),
            tabs=(
                ("benchmarks", "Benchmarks"),
                ("catalogue", "Catalogue"),
                ("load-tools", "Load tools"),
            ),
        ),
        Section(
            name="hosts",
            title="Hosts",
            prefixes=("host", "profile"),
            tabs=(("hosts", "Hosts"), ("profiles", "Hardware profiles")),
        ),
    ),
    (
        Section(
            name="settings",
            title="Settings",
            icon="⚙",
            prefixes=(
                "settings", "token", "member", "invitation", "audit", "channel", "delivery", "shar",
                "deleted",
            ),
            tabs=(
                ("settings", "API tokens"),
                ("members", "Members"),
                ("channels", "Channels and webhooks"),
                ("sharing", "Sharing"),
                ("settings-quotas", "Quotas"),
                ("deleted", "Deleted"),
                ("audit", "Audit log"),
            ),
        ),
    ),
)  # fmt: skip


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Return `member`, `navigation`, `tabs` and `may_write` for the templates.

    For a visitor return `visitor` and the `project`, with its open pages.
    """
    if hasattr(request, "pitwall_place"):
        return _build_visitor_context(request)
    member = _find_member(request)
    if member is None:
        return {"member": None, "navigation": (), "help": _build_help("")}
    here, administrates = _get_url_name(request), member.has(Role.MAINTAINER)
    return {
        "member": member,
        "navigation": tuple(
            tuple(_build_item(each, here, member) for each in group) for group in _GROUPS
        ),
        "tabs": _build_tabs(here, lambda name: administrates or name not in _FOR_ADMINISTRATORS),
        "help": _build_help(here),
        "may_write": member.has(Role.MEMBER),
        "may_administrate": administrates,
        "memberships": load_memberships(member.user),
    }


def _get_url_name(request: HttpRequest) -> str:
    match = getattr(request, "resolver_match", None)
    return (match.url_name or "") if match else ""


def _build_help(here: str) -> NavigationItem:
    return NavigationItem(url=HELP, title="Help", active=here.startswith(_HELP_PAGES))


def _build_item(section: Section, here: str, member: Member | None) -> NavigationItem:
    return NavigationItem(
        url=_build_url(section.name, get_script_prefix()),
        title=section.title,
        active=here.startswith(section.prefixes),
        count=count_open_alerts(member.team) if member and section.name == "alerts" else 0,
        icon=section.icon,
    )


def _build_tabs(here: str, is_open: Callable[[str], bool]) -> tuple[NavigationItem, ...]:
    """Return the tabs of the section that has this page as a tab; none for other pages."""
    tabs = next((each.tabs for group in _GROUPS for each in group if here in dict(each.tabs)), ())
    items = tuple(
        NavigationItem(url=_build_url(name, get_script_prefix()), title=title, active=name == here)
        for name, title in tabs
        if is_open(name)
    )
    return items if len(items) > 1 else ()


@cache
def _build_url(name: str, prefix: str) -> str:
    """Return the address of a page behind a prefix, cached since every page needs it."""
    return reverse(name)


def _build_visitor_context(request: HttpRequest) -> dict[str, Any]:
    visitor, here = get_visitor(request), _get_url_name(request)
    browses = visitor is not None and visitor.page is None
    sections = [each for group in _GROUPS for each in group if each.name in _FOR_VISITORS]
    return {
        "member": None,
        "visiting": True,
        "visitor": visitor,
        "visited": getattr(request, "pitwall_project", None),
        "navigation": (tuple(_build_item(each, here, None) for each in sections),)
        if browses
        else (),
        "tabs": _build_tabs(here, _FOR_VISITORS.__contains__) if browses else (),
        "help": _build_help(here),
    }


def _find_member(request: HttpRequest) -> Member | None:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    try:
        return get_member(request)
    except PermissionRefusedError:
        return None
