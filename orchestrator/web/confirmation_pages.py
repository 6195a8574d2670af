"""Destructive actions ask first: a GET shows the consequences, and the button that posts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from orchestrator.core.dependents import DependentCount

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationPage:
    """`effects` are sentences; `dependents` are counted; Cancel leads to the address `back`."""

    question: str
    effects: tuple[str, ...]
    button: str
    back: str
    dependents: tuple[DependentCount, ...] = ()


def confirm_first(
    describe: Callable[Concatenate[HttpRequest, P], ConfirmationPage],
) -> Callable[[View[P]], View[P]]:
    """Decorate a view that handles a POST: a GET shows the confirmation that `describe` returns.

    `describe` gets the arguments of the view. The page works without JavaScript; with it,
    `confirm.js` shows it as a dialog.
    """

    def decorate(view: View[P]) -> View[P]:
        @require_http_methods(["GET", "HEAD", "POST"])
        @wraps(view)
        def wrapped(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if request.method == "POST":
                return view(request, *args, **kwargs)
            context = {"confirmation": describe(request, *args, **kwargs)}
            return render(request, "confirm.html", context)

        return wrapped

    return decorate
