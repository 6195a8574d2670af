"""Names of branches and tags: the fetch that they are resolved from, or have to wait for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import NamedTuple

from orchestrator.benchmarks.fetch_requests import PAUSES_S, UNKNOWN_AGAIN, fetch_of
from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.services import repository_of
from orchestrator.core.errors import InvalidRequestError, NotReadyError
from orchestrator.database.clock import database_now

#: Failures in a row after which a request that a user waits for is rejected.
TRIES = 3

#: The same for a request that no user waits for: then no further attempt is planned.
TRIES_UNWATCHED = len(PAUSES_S) + 1


class _Asked(NamedTuple):
    """The rules of the current request.

    `since` returns when it was first made (None: now). `strict`: names must come from a fetch after
    that time, even if the mirror knows them. `tries`: the failures after which it is rejected.
    `reads`: it requests no fetch.
    """

    since: Callable[[], datetime | None]
    strict: bool
    tries: int
    reads: bool = False


_asked: ContextVar[_Asked | None] = ContextVar("asked", default=None)


class FetchRunningError(NotReadyError):
    """A name can be resolved only after a fetch; the code that catches this requests it.

    `problem`: why the last fetch failed, empty if it did not.
    """

    def __init__(self, project: Project, *, urgent: bool = True, problem: str = "") -> None:
        last = f"; the last attempt failed: {problem}" if problem else ""
        super().__init__(
            f"the repository of {project.slug} is being fetched; send the request again{last}"
        )
        self.project = project
        self.urgent = urgent
        self.problem = problem


@contextmanager
def names_fetched_after(
    since: Callable[[], datetime | None], *, tries: int = TRIES
) -> Iterator[None]:
    """Within the context, resolve branches and tags from a fetch that started after this time.

    `since` returns None if the request is made for the first time. `tries`: see
    `Fetch.has_failed_since`.
    """
    token = _asked.set(_Asked(since, strict=True, tries=tries))
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def names_of_last_fetch() -> Iterator[None]:
    """Within the context, resolve names as of the last fetch, and request none.

    An unknown name waits for a fetch that another request started.
    """
    token = _asked.set(_Asked(lambda: None, strict=False, tries=TRIES, reads=True))
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def names_as_fetched() -> Iterator[None]:
    """Within the context, resolve names that the mirror knows as of the last fetch.

    Other names wait for a fetch.
    """
    asked = _asked.get()
    token = _asked.set(asked and asked._replace(strict=False))
    try:
        yield
    finally:
        _asked.reset(token)


def check_fetched(project: Project, *, known: bool) -> None:
    """Return if the mirror may resolve a name now; `known`: the mirror knows it.

    Raise FetchRunningError if a fetch has to end first, and InvalidRequestError if it failed
    several times.
    """
    asked = _asked.get()
    strict = asked is not None and asked.strict
    if known and not strict:
        return
    fetch = fetch_of(project)
    if asked is not None and asked.reads:
        _check_read(fetch)
        return
    since = asked.since() if asked else database_now() - UNKNOWN_AGAIN
    has_succeeded = since is not None and fetch.has_succeeded_since(since)
    # After a fetch that succeeded, the mirror may be lost or belong to an earlier URL.
    if has_succeeded and not repository_of(project).is_empty():
        return
    has_failed = since is not None and fetch.has_failed_since(since, asked.tries if asked else 1)
    if has_failed or (not strict and fetch.state == "failed"):
        raise _failure_of(fetch)
    raise FetchRunningError(project, urgent=strict, problem=fetch.error)


def _check_read(fetch: Fetch) -> None:
    if fetch.state == "failed":
        raise _failure_of(fetch)
    if fetch.is_going_on:
        raise FetchRunningError(fetch.project, urgent=False, problem=fetch.error)


def _failure_of(fetch: Fetch) -> InvalidRequestError:
    return InvalidRequestError(
        f"the repository of {fetch.project.slug} could not be fetched: {fetch.error}"
    )
