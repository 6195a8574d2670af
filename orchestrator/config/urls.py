"""The URL map: pages at the root, the API below /api/v1/."""

from django.urls import include, path, re_path

from orchestrator.api.errors import unknown_path
from orchestrator.api.v1 import api

handler500 = "orchestrator.web.failures.server_error"

urlpatterns = [
    path("api/v1/", api.urls),
    re_path(r"^api/", unknown_path),
    path("", include("orchestrator.web.urls")),
]
