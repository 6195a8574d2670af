"""Problem documents for requests that do not reach Pitwall's code."""

import json
from collections.abc import Mapping
from http import HTTPStatus

#: The most bytes of a request line: long filters of long lists fit.
MOST_LINE_BYTES = 8190
#: Retry-After of answers of an overloaded server, in seconds.
RETRY_AFTER_S = 5


def build_problem(
    status: HTTPStatus, title: str, detail: str, *, retry_after_s: int | None = None
) -> bytes:
    """Return the whole response; the connection is closed after it."""
    document = {"type": "about:blank", "title": title, "status": int(status), "detail": detail}
    headers = {"Content-Type": "application/problem+json"}
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    return _answer(status, title, headers, json.dumps(document).encode())


def build_busy_page(html: str) -> bytes:
    """Return the response for browsers that corresponds to BUSY."""
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'",
        "Cache-Control": "no-store",
        "Retry-After": str(RETRY_AFTER_S),
    }
    return _answer(HTTPStatus.SERVICE_UNAVAILABLE, "Service Unavailable", headers, html.encode())


def _answer(status: HTTPStatus, title: str, headers: Mapping[str, str], body: bytes) -> bytes:
    fixed = {"Connection": "close", "Content-Length": str(len(body))}
    lines = [f"{name}: {value}" for name, value in {**fixed, **headers}.items()]
    return "\r\n".join([f"HTTP/1.1 {int(status)} {title}", *lines, "", ""]).encode() + body


TOO_LONG = build_problem(
    HTTPStatus.REQUEST_URI_TOO_LONG,
    "URI Too Long",
    f"the first line of this request has more than {MOST_LINE_BYTES} bytes: "
    "request less at once, or send long values in the body",
)
TOO_SLOW = build_problem(
    HTTPStatus.REQUEST_TIMEOUT,
    "Request Timeout",
    "this request arrived too slowly and was not processed: send it again",
)
BUSY = build_problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "Service Unavailable",
    "too many requests are waiting, and this one was not processed: send it again after the "
    "time in Retry-After",
    retry_after_s=RETRY_AFTER_S,
)
TOO_MANY_UPLOADS = build_problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "Service Unavailable",
    "too many requests with long or chunked bodies are sent at once, and this one was not "
    "processed: send it again after the time in Retry-After",
    retry_after_s=RETRY_AFTER_S,
)
