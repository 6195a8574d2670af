"""The baseline: a Django view that returns 10 kB and does nothing else, served in the same way.

Its middleware is that of `startproject` (`bare_settings.py`), as usual around a Django view.
"""

from __future__ import annotations

from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

PAGE = b"<!doctype html><title>Bare</title>" + b"<p>Nothing to see here.</p>" * 370


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(PAGE)


urlpatterns = [path("", page)]

application = get_wsgi_application()
