"""Limits of page requests per minute, for users and visitors."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from orchestrator.core.api_paths import is_for_programs
from orchestrator.operations.rates import Rate, count_hook, count_session, count_visitor
from orchestrator.web.middleware import GetResponse

_HOOKS = "/hooks/"


def limited_pages(get_response: GetResponse) -> GetResponse:
    """Return a 429 page above the rate of a user, of a visitor's address or of a webhook.

    The API counts its own requests; static files and probes are answered earlier.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if is_for_programs(request.path):
            return get_response(request)
        rate = _count(request)
        if rate is None or not rate.is_exceeded:
            return get_response(request)
        advice = (
            f"{rate.whose.capitalize()} may make {rate.limit} requests a minute. "
            f"Wait {rate.reset_s} s and try again."
        )
        page = render_to_string("429.html", {"title": "Too many requests", "advice": advice})
        response = HttpResponse(page, status=429)
        rate.set_headers(response)
        return response

    return middleware


def _count(request: HttpRequest) -> Rate | None:
    if request.path.startswith(_HOOKS):
        return count_hook(request, request.path.removeprefix(_HOOKS))
    # Reading the user would make the response vary by cookie, also for caches.
    has_session = settings.SESSION_COOKIE_NAME in request.COOKIES
    if has_session and request.user.is_authenticated:
        return count_session(request.user.pk)
    return count_visitor(request)
