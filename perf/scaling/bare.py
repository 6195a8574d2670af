"""The yardstick: a Django view that answers 10 kB and does nothing else, served the same way.

Its middleware is what `startproject` writes, since that is what a Django view has around it.
"""

from __future__ import annotations

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

PAGE = b"<!doctype html><title>Bare</title>" + b"<p>Nothing to see here.</p>" * 370


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(PAGE)


urlpatterns = [path("", page)]

if not settings.configured:
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["127.0.0.1"],
        SECRET_KEY="bare",
        USE_TZ=True,
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
        ],
        MIDDLEWARE=[
            "django.middleware.security.SecurityMiddleware",
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
            "django.middleware.clickjacking.XFrameOptionsMiddleware",
        ],
    )
application = get_wsgi_application()
