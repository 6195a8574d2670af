"""Middleware for every request: valid addresses, limited bodies, security headers."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from orchestrator.core.issued_secrets import has_secret

GetResponse = Callable[[HttpRequest], HttpResponse]
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
#: No page uses any of these browser features, so an injected script may not use them either.
FEATURES = ", ".join(
    f"{name}=()"
    for name in (
        "camera", "microphone", "geolocation", "payment", "usb", "serial", "midi",
        "display-capture", "publickey-credentials-get",
    )
)  # fmt: skip
#: The largest file of a form has 32 MiB. Django would write longer bodies to disk before
#: authentication.
MOST_BODY_BYTES = 40 * 1024**2


def bounded_bodies(get_response: GetResponse) -> GetResponse:
    """Refuse a body that is longer than any that we accept, without reading it."""

    def middleware(request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not (length.isascii() and length.isdecimal()) or int(length) > MOST_BODY_BYTES:
            most = MOST_BODY_BYTES // 1024**2
            return HttpResponse(
                f"A request has at most {most} MiB. Use a command for larger files.\n",
                content_type="text/plain; charset=utf-8",
                status=413,
            )
        return get_response(request)

    return middleware


def require_scheme(get_response: GetResponse) -> GetResponse:
    """Return 502 if a trusted proxy sends no scheme: a redirect to https would loop."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if settings.SECURE_SSL_REDIRECT and "X-Forwarded-Proto" not in request.headers:
            return HttpResponse(
                "The reverse proxy did not send X-Forwarded-Proto, so Pitwall cannot know whether "
                "this request came by HTTPS. Set the header in the proxy, as docs/deployment.md "
                "shows, or set PITWALL_TRUSTED_PROXIES=0 if there is no proxy.\n",
                content_type="text/plain; charset=utf-8",
                status=502,
            )
        return get_response(request)

    return middleware


class RefuseNulBytes:
    """Refuse a NUL byte in addresses and forms: PostgreSQL cannot store it, every query would fail.

    The schemas of the API refuse it in parameters and JSON.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        query = "" if request.path.startswith("/api/") else request.META.get("QUERY_STRING", "")
        if "\0" in request.path_info or "%00" in query:
            return _refuse_nul("The address contains a NUL byte (%00). Remove it.\n")
        return self._get_response(request)

    def process_view(self, request: HttpRequest, *_: object) -> HttpResponse | None:
        """Read the form here, because the token against CSRF has been checked before."""
        if request.method != "POST" or request.path.startswith("/api/"):
            return None
        names = (name for name, values in request.POST.lists() if "\0" in "".join(values))
        if (name := next(names, None)) is None:
            return None
        return _refuse_nul(f"The field {name} contains a NUL byte. Remove it.\n")


def _refuse_nul(message: str) -> HttpResponse:
    return HttpResponse(message, content_type="text/plain; charset=utf-8", status=400)


def content_security_policy(get_response: GetResponse) -> GetResponse:
    """Allow nothing inline and nothing from other hosts; a view may set its own policy."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("Permissions-Policy", FEATURES)
        if has_secret(request.get_full_path()):
            # A browser then sends such an address to no server, not even to Pitwall. `no-referrer`
            # would also make the `Origin` of Pitwall's forms "null", which the CSRF check refuses.
            response.headers["Referrer-Policy"] = "strict-origin"
        return response

    return middleware
