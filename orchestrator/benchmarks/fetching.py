"""The queue of fetches: one row a project, claimed by the workers that run git.

Nothing else fetches: no request, no transaction and no tick waits for a git server. Whoever needs
the newest refs requests a fetch and looks again when one that started later has ended.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import partial
from threading import Event, Thread
from typing import NamedTuple

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Count, Q
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from orchestrator.benchmarks.filing import file_default_branch
from orchestrator.benchmarks.mirrors import size_of
from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.services import mirror_of, repository_of
from orchestrator.core.errors import InvalidRequestError, NotReadyError, PitwallError

logger = logging.getLogger(__name__)

TASK = "orchestrator.dispatch.tasks.fetch_repositories"
#: A worker that has not renewed its claim for this long is taken for dead.
CLAIM = timedelta(seconds=60)
RENEW_EVERY_S = 10.0
PROGRESS_EVERY_S = 1.0
#: So often a command looks whether the fetch of a worker has ended.
COMMAND_LOOK_S = 0.2
#: After so many seconds a fetch that failed is tried again; after the last one only on request.
PAUSES_S = (5, 30, 120, 600, 3600)
#: A name that the mirror does not know is looked for on the server once in so many seconds.
UNKNOWN_AGAIN = timedelta(seconds=30)
MOST_REFS = 50
_CLAIMING = 0x70776601


class _Asked(NamedTuple):
    """Of the request at hand: when it was first made (None: now), and whether names must be newer
    than that, also those that the mirror knows."""

    since: Callable[[], datetime | None]
    strict: bool


_asked: ContextVar[_Asked | None] = ContextVar("asked", default=None)


class FetchRunningError(NotReadyError):
    """A name can be resolved only after a fetch, which whoever catches this requests."""

    def __init__(self, project: Project, *, urgent: bool = True) -> None:
        super().__init__(
            f"the repository of {project.slug} is being fetched; send the request again"
        )
        self.project = project
        self.urgent = urgent


@contextmanager
def names_fetched_after(
    since: Callable[[], datetime | None], *, strict: bool = True
) -> Iterator[None]:
    """Within, branches and tags are resolved from a fetch that started after this time.

    `since` returns None where the request is made for the first time. Without `strict`, this holds
    for names only that the mirror does not know.
    """
    token = _asked.set(_Asked(since, strict))
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def names_as_fetched() -> Iterator[None]:
    """Within, names that the mirror knows mean what they meant at the last fetch."""
    asked = _asked.get()
    token = _asked.set(asked and asked._replace(strict=False))
    try:
        yield
    finally:
        _asked.reset(token)


def check_fetched(project: Project, *, known: bool) -> None:
    """Returns where the mirror may be asked for a name; `known`: the mirror has it.

    FetchRunningError where a fetch has to end first; InvalidRequestError if that one failed.
    """
    asked = _asked.get()
    strict = asked is not None and asked.strict
    if known and not strict:
        return
    since = asked.since() if asked else database_now() - UNKNOWN_AGAIN
    fetch = fetch_of(project)
    if since is not None and fetch.succeeded_at is not None and fetch.succeeded_at >= since:
        return
    has_failed = since is not None and fetch.failed_at is not None and fetch.failed_at >= since
    if has_failed or (not strict and fetch.state == "failed"):
        raise InvalidRequestError(
            f"the repository of {project.slug} could not be fetched: {fetch.error}"
        )
    raise FetchRunningError(project, urgent=strict)


@transaction.atomic
def request_fetch(
    project: Project,
    refs: Sequence[str] = (),
    *,
    urgent: bool = True,
    apart: timedelta = timedelta(),
    since: datetime | None = None,
) -> Fetch:
    """Has the repository fetched, also with these `refs`; the row as it is then.

    A request that is not urgent waits for the end of the back-off after failures. `apart`: the
    fetch starts so long after the one before, at the earliest. `since`: a fetch that is running
    and started after this time is enough.
    """
    Fetch.objects.get_or_create(project_id=project.pk)
    fetch = Fetch.objects.select_for_update().get(pk=project.pk)
    if since is not None and fetch.is_running_since(since) and set(refs) <= set(fetch.refs):
        return fetch
    now = database_now()
    wanted = now
    if fetch.ended_at is not None and (fetch.failures or not urgent):
        wanted = max(now, fetch.ended_at + _pause(1 if urgent else fetch.failures))
    if fetch.started_at is not None:
        wanted = max(wanted, fetch.started_at + apart)
    fetch.requested_at = now
    fetch.next_at = wanted if fetch.next_at is None else min(fetch.next_at, wanted)
    fetch.refs = list(dict.fromkeys([*fetch.refs, *refs]))[-MOST_REFS:]
    fetch.save(update_fields=["requested_at", "next_at", "refs"])
    transaction.on_commit(partial(_wake, settings.FETCH_QUEUE))
    return fetch


def fetch_of(project: Project) -> Fetch:
    """The row of a project as it is; one that is not stored where nothing was ever requested."""
    return Fetch.objects.filter(project=project).first() or Fetch(project=project)


def request_unknown(project: Project) -> None:
    """As `request_fetch`, where some client names a commit that the mirror does not know."""
    if fetch_of(project).state != "queued":
        request_fetch(project, urgent=False, apart=UNKNOWN_AGAIN)


def run_next_fetch() -> int | None:
    """Runs one fetch that is due, to its end; the key of its project, None where none is due."""
    fetch = _claimed()
    if fetch is None:
        return None
    heartbeat = _Heartbeat(fetch)
    heartbeat.start()
    try:
        error = _run(fetch, heartbeat)
    finally:
        heartbeat.end()
    _end(fetch, error)
    return fetch.pk


def finish_fetch(project: Project) -> None:
    """Fetches a repository and waits for the end, for commands; InvalidRequestError if it failed.

    Whoever claims it first runs it: a worker, or this process.
    """
    since = database_now()
    request_fetch(project)
    with names_fetched_after(lambda: since):
        while True:
            run_next_fetch()
            try:
                check_fetched(project, known=True)
            except FetchRunningError:
                time.sleep(COMMAND_LOOK_S)
            else:
                project.refresh_from_db()
                return


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


@transaction.atomic
def _claimed() -> Fetch | None:
    """The fetch that is due for longest, of a team with a free slot; now it is ours."""
    with connection.cursor() as cursor:
        # One at a time, so that the slots of a team are counted right.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CLAIMING])
    now = database_now()
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    running = Fetch.objects.filter(claimed_until__gte=now).values("project__team")
    full = running.annotate(n=Count("pk")).filter(n__gte=settings.FETCHES_A_TEAM)
    due = Fetch.objects.filter(free, next_at__lte=now).order_by("next_at")
    due = due.exclude(project__team__in=full.values("project__team"))
    for fetch in due.select_for_update(skip_locked=True, of=("self",))[:20]:
        if fetch.claim is not None:
            # Its worker died: that counts as a failure, or it might go on so without end.
            _note_failure(fetch, "the worker that fetched it ended", now)
            fetch.save()
            continue
        fetch.claim, fetch.claimed_until = uuid.uuid4(), now + CLAIM
        fetch.started_at, fetch.progress = now, ""
        fetch.save()
        return fetch
    return None


def _run(fetch: Fetch, heartbeat: "_Heartbeat") -> str:
    """Fetches and files; returns what went wrong, empty where nothing did."""
    project = Project.objects.get(pk=fetch.pk)
    try:
        repository = repository_of(project)
        refused = ""
        try:
            repository.fetch(*fetch.refs, on_progress=heartbeat.note)
        except InvalidRequestError as error:
            if not fetch.refs:
                raise
            # One that is gone must not stop the branches.
            refused = str(error)
            repository.fetch(on_progress=heartbeat.note)
        file_default_branch(project, repository)
    except PitwallError as error:
        return str(error)
    except Exception:
        logger.exception("the fetch of project %s failed", project.pk)
        return "a mistake in Pitwall; the server's log has the details"
    if refused:
        logger.warning("refs of project %s could not be fetched: %s", project.pk, refused)
    return ""


@transaction.atomic
def _end(ours: Fetch, error: str) -> None:
    """Notes how it ended; nothing where the claim was lost meanwhile."""
    fetch = Fetch.objects.select_for_update().filter(pk=ours.pk, claim=ours.claim).first()
    if fetch is None:
        logger.warning("the fetch of project %s lost its claim", ours.pk)
        return
    now = database_now()
    if error:
        _note_failure(fetch, error, now)
    else:
        is_requested_since = _requested_since(fetch)
        fetch.succeeded_at, fetch.failures, fetch.error = fetch.started_at, 0, ""
        fetch.next_at = now if is_requested_since else None
        fetch.mirror_bytes = size_of(mirror_of(fetch.project))
    if fetch.next_at is None:
        # Another fetch follows otherwise: after a failure, or since a ref may have moved.
        fetch.refs = [ref for ref in fetch.refs if ref not in ours.refs]
    fetch.claim = fetch.claimed_until = None
    fetch.ended_at, fetch.progress = now, ""
    fetch.save()
    if fetch.next_at is not None:
        transaction.on_commit(partial(_wake, settings.FETCH_QUEUE))


def _note_failure(fetch: Fetch, error: str, now: datetime) -> None:
    fetch.failures = min(fetch.failures + 1, 1000)
    fetch.failed_at, fetch.ended_at, fetch.error = fetch.started_at, now, error[:2000]
    again = fetch.failures <= len(PAUSES_S) or _requested_since(fetch)
    fetch.next_at = now + _pause(fetch.failures) if again else None
    fetch.claim = fetch.claimed_until = None
    fetch.progress = ""


def _requested_since(fetch: Fetch) -> bool:
    """Whether it was requested again after it started."""
    if fetch.requested_at is None or fetch.started_at is None:
        return False
    return fetch.requested_at > fetch.started_at


def _pause(failures: int) -> timedelta:
    return timedelta(seconds=PAUSES_S[max(0, min(failures, len(PAUSES_S)) - 1)])


class _Heartbeat(Thread):
    """Renews a claim while git runs, and writes how far it is."""

    def __init__(self, fetch: Fetch) -> None:
        super().__init__(name=f"fetch-{fetch.pk}", daemon=True)
        self._mine = Fetch.objects.filter(pk=fetch.pk, claim=fetch.claim)
        self._ended = Event()
        self._progress = ""

    def note(self, line: str) -> None:
        self._progress = line[:200]

    def end(self) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        written, waited_s = "", 0.0
        try:
            while not self._ended.wait(PROGRESS_EVERY_S):
                waited_s += PROGRESS_EVERY_S
                if self._progress != written or waited_s >= RENEW_EVERY_S:
                    written, waited_s = self._progress, 0.0
                    self._renew(written)
        finally:
            connection.close()

    def _renew(self, progress: str) -> None:
        try:
            self._mine.update(claimed_until=Now() + CLAIM, progress=progress)
        except DatabaseError as error:
            logger.warning("a claim could not be renewed: %s", error)
            connection.close()


def _wake(queue: str) -> None:
    """Without a broker the next tick does it."""
    try:
        current_app.send_task(TASK, queue=queue, expires=10, retry=False)
    except OperationalError as error:
        logger.warning("no fetch was woken: %s", error)
