"""`/healthz`, `/readyz` and `/metrics` for monitoring.

They are answered before all other middleware. A probe uses the machine's address instead of one of
PITWALL_ALLOWED_HOSTS, has no session, and does not count as a page in the metrics.
"""

import hmac
from collections.abc import Callable, Mapping
from types import MappingProxyType

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from orchestrator.core.this_machine import is_local_request
from orchestrator.operations.exposition import CONTENT_TYPE
from orchestrator.operations.metrics import render_metrics
from orchestrator.operations.readiness import load_recent_parts

GetResponse = Callable[[HttpRequest], HttpResponse]

_REFUSED = (
    "Send PITWALL_METRICS_TOKEN as a bearer token to read the metrics. While it is not set, only "
    "this machine reads them, and nobody where Pitwall is behind a proxy.\n"
)


def probes(get_response: GetResponse) -> GetResponse:
    def middleware(request: HttpRequest) -> HttpResponse:
        answer = _PROBES.get(request.path_info)
        if answer is None:
            return get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        response = answer(request)
        response.headers["Cache-Control"] = "no-store"
        return response

    return middleware


def _answer_healthz(_: HttpRequest) -> HttpResponse:
    """Return 200: this process answers. A restart would fix nothing else."""
    return HttpResponse("alive\n", content_type="text/plain; charset=utf-8")


def _answer_readyz(request: HttpRequest) -> HttpResponse:
    """Return 503 if pages cannot be served; with `?engine`, also if a worker or beat is missing."""
    parts = load_recent_parts()
    wanted = [part for part in parts if part.needed or "engine" in request.GET]
    ready = not any(part.problem for part in wanted)
    states = {part.name: part.problem or "ok" for part in parts}
    return JsonResponse({"ready": ready, "parts": states}, status=200 if ready else 503)


def _answer_metrics(request: HttpRequest) -> HttpResponse:
    if not _may_see_metrics(request):
        return HttpResponse(_REFUSED, status=403, content_type="text/plain; charset=utf-8")
    return HttpResponse(render_metrics(), content_type=CONTENT_TYPE)


def _may_see_metrics(request: HttpRequest) -> bool:
    if token := settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())
    # Only settings show a proxy: it need not add a header to a request.
    if settings.HTTPS or settings.ALLAUTH_TRUSTED_PROXY_COUNT:
        return False
    return is_local_request(request.META.get("REMOTE_ADDR", ""), request.headers)


_PROBES: Mapping[str, Callable[[HttpRequest], HttpResponse]] = MappingProxyType(
    {"/healthz": _answer_healthz, "/readyz": _answer_readyz, "/metrics": _answer_metrics}
)
