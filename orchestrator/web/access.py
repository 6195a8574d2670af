"""Authenticate a request: a member of the chosen team, or a visitor."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import User
from orchestrator.accounts.permissions import check_page
from orchestrator.accounts.selectors import load_member
from orchestrator.accounts.visitors import Visitor

P = ParamSpec("P")
View = TypeVar("View", bound=Callable[..., HttpResponse])

#: Session key of the slug of the last chosen team.
CHOSEN_TEAM = "team"


def get_member(request: HttpRequest) -> Member:
    """Return the requesting member, cached per request.

    Raise PermissionRefusedError without a team.
    """
    member = getattr(request, "pitwall_member", None)
    if member is None:
        chosen = request.session.get(CHOSEN_TEAM, "")
        member = load_member(cast(User, request.user), chosen=chosen)
        request.pitwall_member = member  # type: ignore[attr-defined]
    return member


def get_visitor(request: HttpRequest) -> Visitor | None:
    """Return the visitor of a public project or of a shared link; None for others.

    A visitor's request stays one even if its user is signed in (`web/visitors.py`).
    """
    return getattr(request, "pitwall_visitor", None)


def open_to_visitors(view: View) -> View:
    """Decorate a page that visitors may see; all others are closed to them before the view runs."""
    view.open_to_visitors = True  # type: ignore[attr-defined]
    return view


def for_member(
    view: Callable[Concatenate[HttpRequest, Member, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Decorate a view with `(request, member, …)`; other users are sent to log in."""

    @login_required
    def signed_in(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        member = get_member(request)
        match = request.resolver_match
        check_page(member, (match and match.url_name) or "", request.method or "")
        return view(request, member, *args, **kwargs)

    @wraps(view)
    def wrapped(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        visitor = get_visitor(request)
        if visitor is not None:
            return view(request, visitor, *args, **kwargs)
        if request.headers.get("HX-Request") and not request.user.is_authenticated:
            # The login page must not appear inside a panel: htmx loads the whole page.
            return HttpResponse(headers={"HX-Refresh": "true"})
        return signed_in(request, *args, **kwargs)

    return wrapped
