"""What names of branches and tags may be resolved from: the fetch that they have to wait for."""

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

#: After so many failures in a row a request that somebody watches is refused.
TRIES = 3

#: And one that nobody watches: no further try is planned then.
TRIES_UNWATCHED = len(PAUSES_S) + 1


class _Asked(NamedTuple):
    """Of the request at hand: when it was first made (None: now), whether names must be newer than
    that, also those that the mirror knows, and after how many failures it is refused.

    `reads`: it requests no fetch.
    """

    since: Callable[[], datetime | None]
    strict: bool
    tries: int
    reads: bool = False


_asked: ContextVar[_Asked | None] = ContextVar("asked", default=None)


class FetchRunningError(NotReadyError):
    """A name can be resolved only after a fetch, which whoever catches this requests.

    `problem`: why the newest one failed, empty where it did not.
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
    """Within, branches and tags are resolved from a fetch that started after this time.

    `since` returns None where the request is made for the first time. `tries`: see
    `Fetch.has_failed_since`.
    """
    token = _asked.set(_Asked(since, strict=True, tries=tries))
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def names_of_last_fetch() -> Iterator[None]:
    """Within, names mean what they meant at the last fetch, and nothing requests one.

    A name that is unknown waits for a fetch that somebody else has requested.
    """
    token = _asked.set(_Asked(lambda: None, strict=False, tries=TRIES, reads=True))
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def names_as_fetched() -> Iterator[None]:
    """Within, names that the mirror knows mean what they meant at the last fetch; others wait for
    a fetch."""
    asked = _asked.get()
    token = _asked.set(asked and asked._replace(strict=False))
    try:
        yield
    finally:
        _asked.reset(token)


def check_fetched(project: Project, *, known: bool) -> None:
    """Returns where the mirror may be asked for a name; `known`: the mirror has it.

    FetchRunningError where a fetch has to end first; InvalidRequestError if it failed several
    times.
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
    # A mirror may be lost, or belong to an earlier address, after a fetch that succeeded.
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
