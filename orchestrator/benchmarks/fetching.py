"""The fetch worker: it claims due rows and runs git."""

import logging
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Q

from orchestrator.benchmarks.build_sources import fetch_requested_sources
from orchestrator.benchmarks.fetch_requests import (
    PAUSES_S,
    pause_after,
    request_fetch,
    wake_fetches,
)
from orchestrator.benchmarks.filing import file_default_branch
from orchestrator.benchmarks.mirrors import MirrorBusyError, measure_folder
from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.benchmarks.refs import (
    FetchRunningError,
    check_fetched,
    get_mirror_path,
    open_repository,
    resolve_after_fetch,
)
from orchestrator.benchmarks.repository import Repository
from orchestrator.benchmarks.suite_repositories import update_suite_repository
from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.core.heartbeat import HEARTBEAT, Claim, ClaimLost
from orchestrator.database.clock import read_database_time
from orchestrator.database.row_claims import build_row_claim

logger = logging.getLogger(__name__)

#: Without a renewal of its claim for this long a worker counts as dead.
CLAIM = timedelta(seconds=60)

#: Seconds between two checks by a command whether a worker's fetch has ended.
COMMAND_POLL_S = 0.2

#: How long a fetch is postponed if its mirror is in use.
BUSY_PAUSE = timedelta(seconds=10)

#: The slots above this share are reserved for teams that hold none.
SHARED_SLOTS = 3 / 4

#: Time limit for fetching refs one by one if not all can be fetched; the next fetch continues.
REFS_S = 120.0

_CLAIMING = 0x70776601


def run_next_fetch() -> int | None:
    """Run one due fetch until it ends; return the key of its project, or None if none is due."""
    since = time.monotonic()
    fetch = _claim_fetch()
    if fetch is None:
        return None
    try:
        with HEARTBEAT.keeping(_build_fetch_claim(fetch, since=since)) as claim:
            claim.begin("the fetch", math.inf)  # Its calls of git have separate limits.
            result = _run(fetch, claim)
    except MirrorBusyError:
        _reschedule(fetch)
    except ClaimLost:
        logger.warning("the fetch of project %s lost its claim", fetch.pk)
    else:
        _end_fetch(fetch, result.error, retry=result.retry)
    return fetch.pk


def finish_fetch(project: Project) -> None:
    """Fetch a repository and wait until it ends, for commands; InvalidRequestError if it failed.

    The process that claims it first runs it: a worker, or this one.
    """
    since = read_database_time()
    request_fetch(project)
    with resolve_after_fetch(lambda: since, tries=1):
        while True:
            run_next_fetch()
            try:
                check_fetched(project, known=True)
            except FetchRunningError:
                time.sleep(COMMAND_POLL_S)
            else:
                project.refresh_from_db()
                return


def collect_garbage(project_id: int) -> None:
    """Repack the mirror of a project if that is due; errors are only logged."""
    project = Project.objects.filter(pk=project_id).first()
    if project is None:
        return
    try:
        open_repository(project).collect_garbage()
    except (PitwallError, OSError) as error:
        logger.warning("the mirror of project %s was not packed again: %s", project_id, error)


@transaction.atomic
def _claim_fetch() -> Fetch | None:
    """Claim and return the fetch that has been due longest, of a team with a free slot."""
    with connection.cursor() as cursor:
        # One worker at a time, so that the slots of a team are counted correctly.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CLAIMING])
    now = read_database_time()
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    due = Fetch.objects.filter(free, next_at__lte=now, project__deleted_at=None)
    due = due.order_by("next_at")
    due = due.exclude(project__team__in=_find_teams_without_slots(now))
    for fetch in due.select_for_update(skip_locked=True, of=("self",))[:20]:
        if fetch.claim is not None:
            # Its worker died. That counts as a failure, so that it cannot repeat without limit.
            _record_failure(fetch, "the worker that fetched it ended", now)
            fetch.save()
            continue
        fetch.claim, fetch.claimed_until = uuid.uuid4(), now + CLAIM
        fetch.started_at, fetch.progress = now, ""
        fetch.save()
        return fetch
    return None


def _find_teams_without_slots(now: datetime) -> list[int]:
    """Return the teams that use all their slots; each team gets one if few slots are free."""
    running = Fetch.objects.filter(claimed_until__gte=now).values_list("project__team")
    held = Counter(team for (team,) in running)
    is_nearly_full = held.total() >= settings.FETCH_SLOTS * SHARED_SLOTS
    most = 1 if is_nearly_full else settings.FETCHES_A_TEAM
    return [team for team, count in held.items() if count >= most]


class _Result(NamedTuple):
    """`error` is empty after success; `retry`: another attempt may succeed."""

    error: str = ""
    retry: bool = True


def _run(fetch: Fetch, claim: Claim) -> _Result:
    """Fetch the repository and file its commits; then `fetch.refs` are the refs that were tried.

    Raise ClaimLost, or MirrorBusyError if another process uses the mirror.
    """
    project = Project.with_deleted.get(pk=fetch.pk)
    try:
        repository = open_repository(project)
        update_suite_repository(project.repository_url)
        note = partial(_note_progress, fetch, claim)
        _fetch(fetch, repository, note)
        fetch_requested_sources(project, repository, note)
        try:
            file_default_branch(project, repository)
        except InvalidRequestError as error:
            # If the default branch is missing, only a push or new settings help.
            return _Result(str(error), retry=repository.find(project.default_branch) is not None)
    except (ClaimLost, MirrorBusyError):
        raise
    except PitwallError as error:
        return _Result(str(error))
    except Exception:
        logger.exception("the fetch of project %s failed", project.pk)
        return _Result("an internal error; the server's log has the details")
    return _Result()


def _fetch(fetch: Fetch, repository: Repository, note: Callable[[str], None]) -> None:
    """Fetch everything at once; if that fails, the branches first and then the refs one by one."""
    if fetch.clone:
        repository.clone(on_progress=note)
    try:
        # A clone has already fetched the branches.
        repository.fetch(*fetch.refs, branches=not fetch.clone, on_progress=note)
    except InvalidRequestError:
        if not fetch.refs:
            raise
        repository.fetch(on_progress=note)
        fetch.refs = _fetch_refs(fetch, repository, note)


def _fetch_refs(
    fetch: Fetch, repository: Repository, on_progress: Callable[[str], None]
) -> list[str]:
    """Fetch refs one by one, because some may be gone; return those that were tried in time."""
    give_up = time.monotonic() + REFS_S
    tried: list[str] = []
    for ref in fetch.refs:
        if tried and time.monotonic() >= give_up:
            break
        tried.append(ref)
        try:
            repository.fetch(ref, branches=False, on_progress=on_progress)
        except InvalidRequestError as error:
            logger.warning("a ref of project %s could not be fetched: %s", fetch.pk, error)
    return tried


def _note_progress(fetch: Fetch, claim: Claim, line: str) -> None:
    claim.check()
    _record_progress(fetch, line)


def _record_progress(fetch: Fetch, line: str) -> None:
    """Store the progress of git; a failure to store it does not stop the fetch."""
    try:
        Fetch.objects.filter(pk=fetch.pk, claim=fetch.claim).update(progress=line[:200])
    except DatabaseError as error:
        logger.warning("the progress of a fetch could not be written: %s", error)
        connection.close()


def _build_fetch_claim(fetch: Fetch, *, since: float) -> Claim:
    held = Fetch.objects.filter(pk=fetch.pk, claim=fetch.claim)
    return build_row_claim(held, until="claimed_until", lasts_s=CLAIM.total_seconds(), since=since)


@transaction.atomic
def _end_fetch(ours: Fetch, error: str, *, retry: bool = True) -> None:
    """Store the result of the fetch; nothing if the claim was lost in the meantime."""
    fetch = Fetch.objects.select_for_update().filter(pk=ours.pk, claim=ours.claim).first()
    if fetch is None:
        logger.warning("the fetch of project %s lost its claim", ours.pk)
        return
    now = read_database_time()
    if error:
        _record_failure(fetch, error, now, retry=retry)
        if fetch.next_at is None:
            fetch.refs, fetch.clone = [], False
    else:
        fetch.succeeded_at, fetch.failures, fetch.error = fetch.started_at, 0, ""
        fetch.mirror_bytes = measure_folder(get_mirror_path(fetch.project))
        fetch.clone = fetch.clone and not ours.clone
        _plan_next(fetch, ours.refs, now)
    fetch.claim = fetch.claimed_until = None
    fetch.ended_at, fetch.progress = now, ""
    fetch.save()
    if fetch.next_at is not None:
        wake_fetches()


def _plan_next(fetch: Fetch, tried: list[str], now: datetime) -> None:
    """Plan the fetch after a successful one: for remaining refs, or for a newer request."""
    left = [ref for ref in fetch.refs if ref not in tried]
    # They may have moved before the new request. Refs that were not tried come first.
    again = [ref for ref in fetch.refs if ref in tried] if fetch.is_requested_again else []
    if left:
        fetch.next_at = now
    elif not fetch.is_requested_again:
        fetch.next_at = None
    fetch.refs = left + again
    if fetch.next_at is not None:
        fetch.requested_at = now


@transaction.atomic
def _reschedule(ours: Fetch) -> None:
    """Release the claim; another process uses the mirror, which is no failure of its server."""
    rows = Fetch.objects.filter(pk=ours.pk, claim=ours.claim)
    now = read_database_time()
    rows.update(
        claim=None, claimed_until=None, progress="", requested_at=now, next_at=now + BUSY_PAUSE
    )


def _record_failure(fetch: Fetch, error: str, now: datetime, *, retry: bool = True) -> None:
    fetch.failures = min(fetch.failures + 1, 1000)
    fetch.failed_at, fetch.ended_at, fetch.error = fetch.started_at, now, error[:2000]
    again = (retry and fetch.failures <= len(PAUSES_S)) or fetch.is_requested_again
    fetch.next_at = now + pause_after(fetch.failures) if again else None
    fetch.claim = fetch.claimed_until = None
    fetch.progress = ""
