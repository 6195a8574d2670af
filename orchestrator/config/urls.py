"""The URL map: pages at the root, the API below /api/v1/."""

from django.urls import include, path

from orchestrator.api.v1 import api

urlpatterns = [
    path("api/v1/", api.urls),
    path("", include("orchestrator.web.urls")),
]
