"""The URL map: pages at the root, the API below /api/v1/, and the addresses of Codespeed."""

from django.urls import include, path, re_path

from orchestrator.api import codespeed
from orchestrator.api.docs import group_page
from orchestrator.api.errors import answer_unknown_path
from orchestrator.api.served_openapi import serve_openapi
from orchestrator.api.v1 import api

handler500 = "orchestrator.web.errors.server_error"

urlpatterns = [
    # Placed before the router, which would create it again for each request.
    path("api/v1/openapi.json", serve_openapi),
    path("api/v1/docs/<slug:name>", group_page, name="api-docs-group"),
    path("api/v1/", api.urls),
    re_path(r"^api/", answer_unknown_path),
    path("result/add/json/", codespeed.add_results, name="codespeed-results"),
    path("result/add/", codespeed.add_result, name="codespeed-result"),
    path("", include("orchestrator.web.urls")),
]
