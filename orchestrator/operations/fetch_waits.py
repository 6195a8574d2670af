"""Requests that name branches or tags: each is sent again until a fetch that is new enough ended.

The first such request is noted with its time, and a fetch is requested. A repeat, which is the same
request or one with the same idempotency key, is answered from a fetch that started after that time.
"""

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

from orchestrator.benchmarks.fetching import (
    FetchRunningError,
    database_now,
    names_fetched_after,
    request_fetch,
)
from orchestrator.benchmarks.models import Fetch

#: So long the time of a first request is known, since it was repeated last.
KNOWN_S = 600
RETRY_AFTER_S = 1
_READS = ("GET", "HEAD", "OPTIONS")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class FetchWait:
    """Of one request: when it was first made, if it is a repeat."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._key: str | None = None
        self._since: datetime | None = None
        self.is_waiting = False

    def since(self) -> datetime | None:
        """When it was first made; None for the first time."""
        if self._key is None:
            self._key = _key_of(self._request)
            self._since = cache.get(self._key)
        return self._since

    def hold(self, error: FetchRunningError) -> Fetch:
        """Requests the fetch and notes the time; to be called outside of transactions."""
        since = self.since() or database_now()
        fetch = request_fetch(error.project, urgent=error.urgent, since=since)
        cache.set(self._key, since, KNOWN_S)
        self.is_waiting = True
        return fetch

    def end(self) -> None:
        """The next request of this kind is another one."""
        if self._since is not None and self._key is not None and not self.is_waiting:
            cache.delete(self._key)


def fetch_waits(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Gives each request its `fetch_wait`; one that only reads waits for unknown names alone."""

    def middleware(request: HttpRequest) -> HttpResponse:
        wait = FetchWait(request)
        request.fetch_wait = wait  # type: ignore[attr-defined]
        with names_fetched_after(wait.since, strict=request.method not in _READS):
            response = get_response(request)
        wait.end()
        return response

    return middleware


def ask_again(response: HttpResponse) -> HttpResponse:
    """The answer to a request that has to wait, which is no fault to be logged."""
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def wait_of(request: HttpRequest) -> FetchWait:
    wait: FetchWait = request.fetch_wait  # type: ignore[attr-defined]
    return wait


def _key_of(request: HttpRequest) -> str:
    who = request.headers.get("Authorization") or str(getattr(request.user, "pk", ""))
    same = request.headers.get("Idempotency-Key", "").encode() or _content_of(request)
    parts = [who.encode(), str(request.method).encode(), request.get_full_path().encode(), same]
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return f"fetch-wait:{digest.hexdigest()}"


def _content_of(request: HttpRequest) -> bytes:
    """The fields of a form, or the body of another request.

    A page that sends a form again has another CSRF token, and may encode the form another way.
    """
    if request.content_type in _FORMS:
        fields = [item for item in request.POST.lists() if item[0] != "csrfmiddlewaretoken"]
        return repr(sorted(fields)).encode()
    return request.body
