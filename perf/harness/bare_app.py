"""The yardstick: a Django view that answers 10 kB and does nothing else, served the same way.

Its middleware is what `startproject` writes, since that is what a Django view has around it
(`bare_settings.py`).
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
