"""The four answers with Django, as a WSGI application; no middleware and no database."""

import sys

import work
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["*"],
    DEBUG=False,
    MIDDLEWARE=[],
    ROOT_URLCONF=sys.modules[__name__],
    SECRET_KEY="of no use here",
)


def view(make):
    return lambda request: HttpResponse(make(), content_type="text/plain")


urlpatterns = [path(place.lstrip("/"), view(make)) for place, make in work.ANSWERS.items()]


def start():
    import django

    django.setup()
    return WSGIHandler()


app = start()
