"""The WSGI application that gunicorn serves."""

import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.config.settings")

if not settings.SECRET_KEY_IS_GIVEN:
    raise ImproperlyConfigured(
        "set PITWALL_SECRET_KEY to 50 or more random characters, the same for web and workers, "
        "and keep it: stored private keys are sealed with it"
    )

application = get_wsgi_application()
# Import every page now, so that the first request is not slow.
get_resolver().url_patterns  # noqa: B018
