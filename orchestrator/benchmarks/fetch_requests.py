"""Requests of fetches: one row per project, claimed by the fetch workers.

No request, transaction or tick waits for a git server. Code that needs the newest refs requests a
fetch, and checks later whether a newer fetch has ended.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from orchestrator.benchmarks.models import Fetch, Project
from orchestrator.database.clock import read_database_time
from orchestrator.database.task_messages import send_task

TASK = "orchestrator.dispatch.background_tasks.fetch_repositories"

#: Pauses before a failed fetch is tried again; after the last one only a request starts it.
PAUSES_S = (5, 30, 120, 600, 3600)

#: Pause between two fetches for names that the mirror does not know.
UNKNOWN_AGAIN = timedelta(seconds=30)

MOST_REFS = 50


@transaction.atomic
def request_fetch(
    project: Project,
    refs: Sequence[str] = (),
    *,
    urgent: bool = True,
    apart: timedelta = timedelta(),
    since: datetime | None = None,
    clone: bool = False,
) -> Fetch:
    """Request a fetch of the repository, which includes these `refs`; return its row.

    A request that is not urgent waits until the back-off after failures has ended. `apart`: the
    least time between the starts of the previous fetch and this one. `since`: a running fetch that
    started later is enough. `clone`: a new clone replaces the mirror first.
    """
    Fetch.objects.get_or_create(project_id=project.pk)
    fetch = Fetch.objects.select_for_update().get(pk=project.pk)
    if since is not None and fetch.is_running_since(since) and set(refs) <= set(fetch.refs):
        return fetch
    now = read_database_time()
    wanted = now
    if fetch.ended_at is not None and (fetch.failures or not urgent):
        wanted = max(now, fetch.ended_at + pause_after(1 if urgent else fetch.failures))
    if fetch.started_at is not None:
        wanted = max(wanted, fetch.started_at + apart)
    # The time of a running fetch is in the past; that of a request after its start is not.
    is_first = fetch.next_at is None or (fetch.claim is not None and not fetch.is_requested_again)
    fetch.requested_at = now
    fetch.next_at = wanted if is_first or fetch.next_at is None else min(fetch.next_at, wanted)
    fetch.refs = list(dict.fromkeys([*fetch.refs, *refs]))[-MOST_REFS:]
    fetch.clone = fetch.clone or clone
    fetch.save(update_fields=["requested_at", "next_at", "refs", "clone"])
    wake_fetches()
    return fetch


def load_fetch(project: Project) -> Fetch:
    """Return the row of a project; an unsaved one if no fetch was requested yet."""
    return Fetch.objects.filter(project=project).first() or Fetch(project=project)


def request_unknown(project: Project) -> None:
    """Request a fetch because a client names a commit that the mirror does not know."""
    if load_fetch(project).state != "queued":
        request_fetch(project, urgent=False, apart=UNKNOWN_AGAIN)


def pause_after(failures: int) -> timedelta:
    return timedelta(seconds=PAUSES_S[max(0, min(failures, len(PAUSES_S)) - 1)])


def wake_fetches() -> None:
    """Start a fetch after the transaction is committed; without a broker the next tick does it."""
    transaction.on_commit(partial(send_task, TASK))
