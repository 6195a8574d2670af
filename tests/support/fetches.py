"""Run requested fetches in tests without a fetch worker."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread
from typing import Any

from django.db import connection
from django.db.models import F
from django.http import HttpResponse
from django.test import Client

from orchestrator.benchmarks.build_sources import load_build_source
from orchestrator.benchmarks.fetch_requests import request_fetch
from orchestrator.benchmarks.models import BuildSource, Fetch, Project
from orchestrator.benchmarks.refs import FetchRunningError
from orchestrator.database.clock import read_database_time
from orchestrator.dispatch.background_tasks import fetch_repositories
from orchestrator.forges.models import PullRequest
from orchestrator.forges.pr_sync import load_due_pull_ids, sync_pull_request

#: The most repeats of a request: each repeat follows a fetch.
MOST_REPEATS = 5
PATIENCE_S = 60.0


def run_fetches() -> int:
    """Run the fetches that are due, including pauses after failures. Return their number."""
    pause = timedelta(hours=2)
    requested = list(Fetch.objects.exclude(next_at=None).values_list("pk", flat=True))
    Fetch.objects.filter(pk__in=requested).update(next_at=F("next_at") - pause)
    fetch_repositories()
    return len(requested)


def fetch_now(project: Project) -> None:
    """Fetch the repository of a project. Raise AssertionError if that failed."""
    request_fetch(project)
    run_fetches()
    wait_for_fetches()
    project.refresh_from_db()
    assert not project.fetch.error, project.fetch.error


def wait_for_fetches() -> None:
    """Wait for queued and running fetches, which the thread of a live server may have taken."""
    give_up = time.monotonic() + PATIENCE_S
    while any(fetch.is_going_on for fetch in Fetch.objects.all()):
        assert time.monotonic() < give_up, "the fetch does not end"
        time.sleep(0.05)


def repeated(send: Callable[[], HttpResponse]) -> HttpResponse:
    """Return the response to a request that is repeated while a fetch runs, as by a real client."""
    for _ in range(MOST_REPEATS):
        answer = send()
        if answer.status_code not in (202, 503) or "Retry-After" not in answer.headers:
            break
        run_fetches()
    return answer


class PatientClient(Client):
    """Repeats a request while a fetch runs."""

    def generic(self, *args: Any, **more: Any) -> Any:
        return repeated(lambda: super(PatientClient, self).generic(*args, **more))


def read_source(project: Project, sha: str) -> BuildSource:
    """Return the source as a job gets it: it asks, waits for the fetch, and asks again."""
    since = read_database_time()
    commit = project.commits.get(sha=sha)
    for _ in range(3):
        try:
            return load_build_source(project, commit, since=since)
        except FetchRunningError as error:
            request_fetch(error.project, since=since)
            run_fetches()
    raise AssertionError("it waits for one fetch after the other")


@contextmanager
def fetching() -> Iterator[None]:
    """Run requested fetches in a thread, as the worker of fetches does; for live servers."""
    end = Event()

    def work() -> None:
        try:
            while not end.wait(0.1):
                fetch_repositories()
        finally:
            connection.close()

    thread = Thread(target=work, name="fetching")
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def follow_pulls(later: timedelta = timedelta()) -> int:
    """Process the pull requests that are due after `later`; return their number."""
    waiting = PullRequest.objects.exclude(next_at=None)
    waiting.update(next_at=F("next_at") - later)
    return sum(map(sync_pull_request, load_due_pull_ids()))
