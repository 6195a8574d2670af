"""Answers to requests that Pitwall itself never sees, as problem documents."""

import json
from http import HTTPStatus

#: Bytes of the first line of a request: long filters of long lists fit in.
MOST_LINE_BYTES = 8190


def problem(
    status: HTTPStatus, title: str, detail: str, *, retry_after_s: int | None = None
) -> bytes:
    """The whole answer; the connection is closed after it."""
    document = {"type": "about:blank", "title": title, "status": int(status), "detail": detail}
    body = json.dumps(document).encode()
    head = (
        f"HTTP/1.1 {int(status)} {title}\r\nConnection: close\r\n"
        f"Content-Type: application/problem+json\r\nContent-Length: {len(body)}\r\n"
    )
    if retry_after_s is not None:
        head += f"Retry-After: {retry_after_s}\r\n"
    head += "\r\n"
    return head.encode() + body


TOO_LONG = problem(
    HTTPStatus.REQUEST_URI_TOO_LONG,
    "URI Too Long",
    f"the first line of this request has more than {MOST_LINE_BYTES} bytes: "
    "ask for less at once, or send what is long in a body",
)
TOO_SLOW = problem(
    HTTPStatus.REQUEST_TIMEOUT,
    "Request Timeout",
    "this request came too slowly, and nothing of it was done: send it again",
)
BUSY = problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "Service Unavailable",
    "too many requests wait for this server, and nothing of this one was done: send it again "
    "after the time in Retry-After",
    retry_after_s=5,
)
TOO_MANY_UPLOADS = problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "Service Unavailable",
    "too many requests with long or chunked bodies are sent at once, and nothing of this one was "
    "done: send it again after the time in Retry-After",
    retry_after_s=5,
)
