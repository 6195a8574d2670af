"""`/healthz`, `/readyz` and `/metrics`: for what watches Pitwall, and not for people.

They are answered before all else: a probe names the machine's address and not one of
PITWALL_ALLOWED_HOSTS, has no session, and is no page whose time counts.
"""

import hmac
from collections.abc import Callable, Mapping
from types import MappingProxyType

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from orchestrator.operations.exposition import CONTENT_TYPE
from orchestrator.operations.metrics import metrics_text
from orchestrator.operations.readiness import parts

GetResponse = Callable[[HttpRequest], HttpResponse]

_HERE = frozenset({"127.0.0.1", "::1"})
_REFUSED = (
    "Metrics are told to whoever sends PITWALL_METRICS_TOKEN as a bearer token. While none is set, "
    "they are told to this machine only, and to nobody behind a proxy.\n"
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


def _healthz(_: HttpRequest) -> HttpResponse:
    """This process answers; a restart would mend nothing else."""
    return HttpResponse("alive\n", content_type="text/plain; charset=utf-8")


def _readyz(request: HttpRequest) -> HttpResponse:
    """503 where pages cannot be served; with `?engine`, also while no worker or beat is heard."""
    found = parts()
    wanted = [part for part in found if part.needed or "engine" in request.GET]
    ready = not any(part.problem for part in wanted)
    told = {part.name: part.problem or "ok" for part in found}
    return JsonResponse({"ready": ready, "parts": told}, status=200 if ready else 503)


def _metrics(request: HttpRequest) -> HttpResponse:
    if not _may_see_metrics(request):
        return HttpResponse(_REFUSED, status=403, content_type="text/plain; charset=utf-8")
    return HttpResponse(metrics_text(), content_type=CONTENT_TYPE)


def _may_see_metrics(request: HttpRequest) -> bool:
    if token := settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())
    behind_a_proxy = {"X-Forwarded-For", "Forwarded", "X-Real-IP"} & set(request.headers)
    return request.META.get("REMOTE_ADDR") in _HERE and not behind_a_proxy


_PROBES: Mapping[str, Callable[[HttpRequest], HttpResponse]] = MappingProxyType(
    {"/healthz": _healthz, "/readyz": _readyz, "/metrics": _metrics}
)
