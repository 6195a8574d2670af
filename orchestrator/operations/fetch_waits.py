"""Requests that name branches or tags wait for a fetch that is new enough.

The first such request stores its time and requests a fetch. The client then repeats it until it is
answered from a fetch that started after that time. A repeat is the same request, or one with the
same idempotency key. Requests that only read are answered from the last fetch and request none: a
page view must not load a git server.
"""

import re
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

from orchestrator.benchmarks.fetch_requests import load_fetch, request_fetch
from orchestrator.benchmarks.models import Fetch
from orchestrator.benchmarks.refs import (
    TRIES,
    FetchRunningError,
    resolve_after_fetch,
    resolve_at_last_fetch,
)
from orchestrator.database.clock import read_database_time

#: The time of a first request is forgotten so long after its last repeat.
KNOWN_S = 600
RETRY_AFTER_S = 1
_KEY = re.compile(r"fetch-wait:[0-9a-f]{64}")
_READS = ("GET", "HEAD", "OPTIONS")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class FetchWait:
    """The wait of one request: when it was first made, if it is a repeat."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._key: str | None = None
        self._since: datetime | None = None
        self.is_waiting = False

    def since(self) -> datetime | None:
        """Return when the request was first made; None for the first time."""
        if self._key is None:
            self._key = _build_wait_key(self._request)
            self._since = cache.get(self._key)
        return self._since

    def hold(self, error: FetchRunningError) -> Fetch:
        """Request the fetch and store the time. Call it outside of transactions.

        A request that only reads waits for a fetch that another request started.
        """
        self.is_waiting = True
        if self._request.method in _READS:
            return load_fetch(error.project)
        since = self.since() or read_database_time()
        fetch = request_fetch(error.project, urgent=error.urgent, since=since)
        cache.set(self._key, since, KNOWN_S)
        return fetch

    @property
    def key(self) -> str:
        """The key of this request for `is_fetch_awaited`; empty if it does not wait."""
        return self._key or ""

    def end(self) -> None:
        """Forget the time: the next request of this kind is a new one."""
        if self._since is not None and self._key is not None and not self.is_waiting:
            cache.delete(self._key)


def fetch_waits(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Middleware: set `fetch_wait` on each request. One that only reads uses the last fetch."""

    def middleware(request: HttpRequest) -> HttpResponse:
        wait = FetchWait(request)
        request.fetch_wait = wait  # type: ignore[attr-defined]
        reads = request.method in _READS
        with resolve_at_last_fetch() if reads else resolve_after_fetch(wait.since):
            response = get_response(request)
        wait.end()
        return response

    return middleware


def ask_again(response: HttpResponse) -> HttpResponse:
    """Return the response to a request that has to wait, marked so that Django does not log it."""
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def is_fetch_awaited(fetch: Fetch, key: str) -> bool:
    """Return whether the request with this key still has to wait, and keep its time.

    If the key is empty or forgotten, it waits for the fetch that is queued or running.
    """
    since = cache.get(key) if _KEY.fullmatch(key) else None
    if since is None:
        return fetch.is_going_on
    cache.touch(key, KNOWN_S)
    has_succeeded = fetch.succeeded_at is not None and fetch.succeeded_at >= since
    return not has_succeeded and not fetch.has_failed_since(since, TRIES)


def get_fetch_wait(request: HttpRequest) -> FetchWait:
    wait: FetchWait = request.fetch_wait  # type: ignore[attr-defined]
    return wait


def _build_wait_key(request: HttpRequest) -> str:
    who = request.headers.get("Authorization") or str(getattr(request.user, "pk", ""))
    same = request.headers.get("Idempotency-Key", "").encode() or _extract_content(request)
    parts = [who.encode(), str(request.method).encode(), request.get_full_path().encode(), same]
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return f"fetch-wait:{digest.hexdigest()}"


def _extract_content(request: HttpRequest) -> bytes:
    """Return the fields of a form, or the body of another request.

    A form that is sent again has another CSRF token and may be encoded differently.
    """
    if request.content_type in _FORMS:
        fields = [item for item in request.POST.lists() if item[0] != "csrfmiddlewaretoken"]
        return repr(sorted(fields)).encode()
    return request.body
