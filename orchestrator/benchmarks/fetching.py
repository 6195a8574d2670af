"""The queue of fetches: one row a project, claimed by the workers that run git.

Nothing else fetches: no request, no transaction and no tick waits for a git server. Whoever needs
the newest refs requests a fetch and looks again when one that started later has ended.
"""

import logging
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Q
from kombu.exceptions import OperationalError

from orchestrator.benchmarks.filing import file_default_branch
from orchestrator.benchmarks.mirrors import MirrorBusyError, size_of
from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.repository import Repository
from orchestrator.benchmarks.services import mirror_of, repository_of
from orchestrator.core.errors import InvalidRequestError, NotReadyError, PitwallError
from orchestrator.core.heartbeat import HEARTBEAT, Claim, ClaimLost
from orchestrator.database.row_claims import claim_of_row

logger = logging.getLogger(__name__)

TASK = "orchestrator.dispatch.tasks.fetch_repositories"
#: A worker that has not renewed its claim for this long is taken for dead.
CLAIM = timedelta(seconds=60)
#: So often a command looks whether the fetch of a worker has ended.
COMMAND_LOOK_S = 0.2
#: After so many seconds a fetch that failed is tried again; after the last one only on request.
PAUSES_S = (5, 30, 120, 600, 3600)
#: A name that the mirror does not know is looked for on the server once in so many seconds.
UNKNOWN_AGAIN = timedelta(seconds=30)
MOST_REFS = 50
#: After so many failures in a row a request that somebody watches is refused.
TRIES = 3
#: And one that nobody watches: no further try is planned then.
TRIES_UNWATCHED = len(PAUSES_S) + 1
#: A fetch whose mirror is in use is put back for so long.
BUSY_PAUSE = timedelta(seconds=10)
#: The slots beyond this share are for teams that hold none.
SHARED_SLOTS = 3 / 4
#: For so long refs are fetched one by one where not all can be fetched; the next fetch goes on.
REFS_S = 120.0
_CLAIMING = 0x70776601


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
    """A name can be resolved only after a fetch, which whoever catches this requests."""

    def __init__(self, project: Project, *, urgent: bool = True, problem: str = "") -> None:
        last = f"; the last try failed: {problem}" if problem else ""
        super().__init__(
            f"the repository of {project.slug} is being fetched; send the request again{last}"
        )
        self.project = project
        self.urgent = urgent


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
    if since is not None and fetch.succeeded_at is not None and fetch.succeeded_at >= since:
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
    since = time.monotonic()
    fetch = _claimed()
    if fetch is None:
        return None
    try:
        with HEARTBEAT.keeping(_claim_of(fetch, since=since)) as claim:
            claim.begin("the fetch", math.inf)  # Its calls of git have limits of their own.
            result = _run(fetch, claim)
    except MirrorBusyError:
        _put_back(fetch)
    except ClaimLost:
        logger.warning("the fetch of project %s lost its claim", fetch.pk)
    else:
        _end(fetch, result.error, retry=result.retry)
    return fetch.pk


def finish_fetch(project: Project) -> None:
    """Fetches a repository and waits for the end, for commands; InvalidRequestError if it failed.

    Whoever claims it first runs it: a worker, or this process.
    """
    since = database_now()
    request_fetch(project)
    with names_fetched_after(lambda: since, tries=1):
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
    due = Fetch.objects.filter(free, next_at__lte=now).order_by("next_at")
    due = due.exclude(project__team__in=_teams_without_slots(now))
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


def _teams_without_slots(now: datetime) -> list[int]:
    """The teams that hold as many slots as they may: one only where few are left."""
    running = Fetch.objects.filter(claimed_until__gte=now).values_list("project__team")
    held = Counter(team for (team,) in running)
    is_nearly_full = held.total() >= settings.FETCH_SLOTS * SHARED_SLOTS
    most = 1 if is_nearly_full else settings.FETCHES_A_TEAM
    return [team for team, count in held.items() if count >= most]


class _Result(NamedTuple):
    """`error` is empty where nothing went wrong; `retry`: another try may go better by itself."""

    error: str = ""
    retry: bool = True


def _run(fetch: Fetch, claim: Claim) -> _Result:
    """Fetches and files.

    `fetch.refs` are those that were tried afterwards. ClaimLost; MirrorBusyError where another
    process has the mirror.
    """
    project = Project.objects.get(pk=fetch.pk)
    try:
        repository = repository_of(project)
        _fetch(fetch, repository, claim)
        try:
            file_default_branch(project, repository)
        except InvalidRequestError as error:
            # Where the default branch is missing, only a push or other settings help.
            return _Result(str(error), retry=repository.find(project.default_branch) is not None)
    except (ClaimLost, MirrorBusyError):
        raise
    except PitwallError as error:
        return _Result(str(error))
    except Exception:
        logger.exception("the fetch of project %s failed", project.pk)
        return _Result("a mistake in Pitwall; the server's log has the details")
    return _Result()


def _fetch(fetch: Fetch, repository: Repository, claim: Claim) -> None:
    """Fetches all at once, or else the branches and then the refs one by one."""

    def note(line: str) -> None:
        claim.check()
        _note_progress(fetch, line)

    try:
        repository.fetch(*fetch.refs, on_progress=note)
    except InvalidRequestError:
        if not fetch.refs:
            raise
        repository.fetch(on_progress=note)
        fetch.refs = _fetch_refs(fetch, repository, note)


def _fetch_refs(
    fetch: Fetch, repository: Repository, on_progress: Callable[[str], None]
) -> list[str]:
    """Fetches refs one by one, those that are gone too; the ones for which there was time."""
    give_up = time.monotonic() + REFS_S
    tried: list[str] = []
    for ref in fetch.refs:
        if tried and time.monotonic() >= give_up:
            break
        tried.append(ref)
        try:
            repository.fetch(ref, on_progress=on_progress)
        except InvalidRequestError as error:
            logger.warning("a ref of project %s could not be fetched: %s", fetch.pk, error)
    return tried


def _note_progress(fetch: Fetch, line: str) -> None:
    """Writes how far git is; that it cannot be written stops no fetch."""
    try:
        Fetch.objects.filter(pk=fetch.pk, claim=fetch.claim).update(progress=line[:200])
    except DatabaseError as error:
        logger.warning("the progress of a fetch could not be written: %s", error)
        connection.close()


def _claim_of(fetch: Fetch, *, since: float) -> Claim:
    held = Fetch.objects.filter(pk=fetch.pk, claim=fetch.claim)
    return claim_of_row(held, until="claimed_until", lasts_s=CLAIM.total_seconds(), since=since)


@transaction.atomic
def _end(ours: Fetch, error: str, *, retry: bool = True) -> None:
    """Notes how it ended; nothing where the claim was lost meanwhile."""
    fetch = Fetch.objects.select_for_update().filter(pk=ours.pk, claim=ours.claim).first()
    if fetch is None:
        logger.warning("the fetch of project %s lost its claim", ours.pk)
        return
    now = database_now()
    if error:
        _note_failure(fetch, error, now, retry=retry)
        if fetch.next_at is None:
            fetch.refs = []
    else:
        is_requested_since = _requested_since(fetch)
        fetch.succeeded_at, fetch.failures, fetch.error = fetch.started_at, 0, ""
        fetch.mirror_bytes = size_of(mirror_of(fetch.project))
        if not is_requested_since:
            # Otherwise all are fetched again, since they may have moved.
            fetch.refs = [ref for ref in fetch.refs if ref not in ours.refs]
        fetch.next_at = now if fetch.refs or is_requested_since else None
        if fetch.next_at is not None:
            fetch.requested_at = now
    fetch.claim = fetch.claimed_until = None
    fetch.ended_at, fetch.progress = now, ""
    fetch.save()
    if fetch.next_at is not None:
        transaction.on_commit(partial(_wake, settings.FETCH_QUEUE))


@transaction.atomic
def _put_back(ours: Fetch) -> None:
    """Frees the claim; another process has the mirror, which is no failure of its server."""
    rows = Fetch.objects.filter(pk=ours.pk, claim=ours.claim)
    now = database_now()
    rows.update(
        claim=None, claimed_until=None, progress="", requested_at=now, next_at=now + BUSY_PAUSE
    )


def _note_failure(fetch: Fetch, error: str, now: datetime, *, retry: bool = True) -> None:
    fetch.failures = min(fetch.failures + 1, 1000)
    fetch.failed_at, fetch.ended_at, fetch.error = fetch.started_at, now, error[:2000]
    again = (retry and fetch.failures <= len(PAUSES_S)) or _requested_since(fetch)
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


def _wake(queue: str) -> None:
    """Without a broker the next tick does it."""
    try:
        current_app.send_task(TASK, queue=queue, expires=10, retry=False)
    except OperationalError as error:
        logger.warning("no fetch was woken: %s", error)
