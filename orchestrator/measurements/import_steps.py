"""Process queued imports step by step: a step lasts seconds and may be repeated.

1. The whole file is checked. A history gets a preview first, waits for a member, and is converted.
2. Its batches are stored one after the other, each in a transaction that also updates the counts of
   the import.

So a worker that is killed loses nothing and stores nothing twice: the next worker continues after
the last stored batch.
"""

import fcntl
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken, Membership, Role
from orchestrator.core.errors import PermissionRefusedError, PitwallError
from orchestrator.measurements.bulk_import import (
    check_file,
    check_room,
    iterate_batches,
    join_changed_series,
    record_import_done,
    store_batch,
)
from orchestrator.measurements.history_steps import run_history_step
from orchestrator.measurements.result_files import UPLOAD
from orchestrator.results.models import IMPORT_ENDED, ImportPart, ImportState, ResultImport

logger = logging.getLogger(__name__)

#: A step ends with the first batch that finishes after this time.
STEP_S = 5.0
#: Longer than a batch takes; a worker that is silent for this long is presumed dead.
CLAIM = timedelta(seconds=120)
#: The number of simultaneous imports is limited: threads of the workers also serve hosts.
MOST_AT_ONCE = 2
#: An import fails after this many attempts without progress.
MOST_TRIES = 5
#: The delay between an unexpected error and the next attempt.
RETRY = timedelta(seconds=10)
KEPT = timedelta(days=30)
#: A history that nobody starts after its preview is removed.
READY_KEPT = timedelta(days=2)
_PRUNED_AT_ONCE = 200
#: The key of the advisory lock under which imports are claimed.
_CLAIMING = 0x70_77_69_6D
#: The name of a converted history.
CONVERTED = "history.jsonl.gz"
_PROGRESS = {"tries": 0, "faults": []}


class _ClaimLostError(Exception):
    """Another worker has the import."""


def import_some() -> bool:
    """Execute one step of one import; return whether there may be more to do immediately."""
    claimed = _claim_import()
    if claimed is None:
        return False
    claim = claimed.claim
    assert claim is not None, "it was set with the claim"
    pause = None
    try:
        pause = _run_step(claimed, claim)
    except _ClaimLostError:
        logger.warning("import %s was taken over by another worker", claimed.pk)
    except PitwallError as error:
        _fail(claimed, claim, _list_faults(error))
    except Exception as error:
        logger.exception("a step of the import %s failed", claimed.pk)
        _pause(claimed, claim, error)
        return True
    _filter_claimed(claimed, claim).update(
        claim=None, claimed_until=Now() + pause if pause else None
    )
    return True


def prune_imports() -> None:
    """Remove some imports that ended long ago or that nobody started, and files that killed workers
    left behind."""
    old = ResultImport.objects.filter(
        Q(state__in=IMPORT_ENDED, ended_at__lt=Now() - KEPT)
        | Q(state=ImportState.READY, last_step_at__lt=Now() - READY_KEPT)
    )
    ResultImport.objects.filter(pk__in=old.values("pk")[:_PRUNED_AT_ONCE]).delete()
    for path in _get_import_folder().iterdir():
        _remove_left(path)


def _remove_left(path: Path) -> None:
    """Remove a file that no worker has locked; the lock of a killed worker is released."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - path.stat().st_mtime > CLAIM.total_seconds():
                path.unlink(missing_ok=True)
    except (BlockingIOError, FileNotFoundError):
        logger.debug("%s is in use or was removed", path)


@transaction.atomic
def _claim_import() -> ResultImport | None:
    """Claim the import that has waited longest for a step; the teams take turns."""
    with connection.cursor() as cursor:
        # Two simultaneous workers would not see each other's claims and could exceed the limit.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CLAIMING])
    going_on = ResultImport.objects.filter(state__in=[ImportState.QUEUED, ImportState.RUNNING])
    held = going_on.filter(claim__isnull=False, claimed_until__gte=Now())
    teams = list(held.values_list("team", flat=True)[:MOST_AT_ONCE])
    if len(teams) >= MOST_AT_ONCE:
        return None
    free = going_on.filter(Q(claimed_until=None) | Q(claimed_until__lt=Now()))
    row = (
        free.exclude(team__in=teams)
        .select_for_update(skip_locked=True, of=("self",))
        .order_by(F("last_step_at").asc(nulls_first=True), "pk")
        .first()
    )
    if row is None:
        return None
    row.claim = uuid4()
    ResultImport.objects.filter(pk=row.pk).update(
        claim=row.claim,
        claimed_until=Now() + CLAIM,
        last_step_at=Now(),
        state=ImportState.RUNNING,
        tries=F("tries") + 1,
    )
    return row


def _run_step(row: ResultImport, claim: UUID) -> timedelta | None:
    """Execute the next step; return how long the import has to wait for something, if it does."""
    if row.tries >= MOST_TRIES:
        raise PitwallError(_explain_failure(row))
    member = _load_sender(row)
    with _open_import_file(row) as path:
        if row.history is not None and not row.converted:
            return run_history_step(row, member, path, partial(_record_step, row, claim))
        if row.total is None:
            _check(row, claim, member, path)
        else:
            _store(row, claim, member, path, row.total)
    return None


def _explain_failure(row: ResultImport) -> str:
    if row.faults:
        return f"the import failed after {MOST_TRIES} attempts: {row.faults[0][1]}"
    return (
        f"the import failed: {MOST_TRIES} times its worker ended before it made any "
        "progress; send the file in smaller parts"
    )


def _check(row: ResultImport, claim: UUID, member: Member, path: Path) -> None:
    checked = check_file(
        member,
        path,
        row.project or None,
        bounds=UPLOAD,
        progress=lambda done, total, note: _record_step(row, claim, checked=done),
    )
    check_room(member, checked)
    _record_step(row, claim, checked=checked.results, total=checked.results, **_PROGRESS)


def _store(row: ResultImport, claim: UUID, member: Member, path: Path, total: int) -> None:
    began = time.monotonic()
    done = row.done
    for lines in iterate_batches(path, UPLOAD, skip=done):
        count = len(lines)

        def note(new: int, count: int = count) -> None:
            """Count in the transaction of the batch: both are stored, or neither."""
            counts = {"done": F("done") + count, "accepted": F("accepted") + new}
            _record_step(row, claim, **counts, **_PROGRESS)

        history = None if row.history is None else row.pk
        store_batch(member, lines, row.project or None, row.name, note, history=history)
        done += count
        if time.monotonic() - began > STEP_S:
            break
    if done >= total:
        _finish(row, claim, member)


def _record_step(row: ResultImport, claim: UUID, **changes: object) -> None:
    if not _filter_claimed(row, claim).update(claimed_until=Now() + CLAIM, **changes):
        raise _ClaimLostError


def _filter_claimed(row: ResultImport, claim: UUID) -> QuerySet[ResultImport]:
    return ResultImport.objects.filter(pk=row.pk, claim=claim)


@transaction.atomic
def _finish(row: ResultImport, claim: UUID, member: Member) -> None:
    _record_step(row, claim, state=ImportState.DONE, ended_at=Now())
    ImportPart.objects.filter(result_import=row).delete()
    if row.history is not None:
        join_changed_series(row.pk)
    accepted = ResultImport.objects.values_list("accepted", flat=True).get(pk=row.pk)
    record_import_done(member, row.name, accepted)


@transaction.atomic
def _fail(row: ResultImport, claim: UUID, faults: list[tuple[str, str]]) -> None:
    if _filter_claimed(row, claim).update(state=ImportState.FAILED, faults=faults, ended_at=Now()):
        ImportPart.objects.filter(result_import=row).delete()
        if row.history is not None:
            join_changed_series(row.pk)


def _pause(row: ResultImport, claim: UUID, error: Exception) -> None:
    """Release the claim after an unexpected error; show its type while the import waits.

    Only the log has its text, which may contain paths and statements of the server.
    """
    fault = f"internal error ({type(error).__name__}); the server's log has the details"
    _filter_claimed(row, claim).update(
        claim=None, claimed_until=Now() + RETRY, faults=[("", fault)]
    )


def _list_faults(error: PitwallError) -> list[tuple[str, str]]:
    faults = list(getattr(error, "faults", ()))
    return faults or [(str(getattr(error, "field", None) or ""), str(error))]


def _load_sender(row: ResultImport) -> Member:
    """Return the sender of the file with their current role.

    Raise PermissionRefusedError if the same request would be refused now.
    """
    token = row.token
    membership = (
        Membership.objects.filter(team=row.team_id, user=row.sender_id, user__is_active=True)
        .select_related("team", "user")
        .first()
    )
    if membership is None or (token and (token.revoked_at is not None or token.has_expired)):
        raise PermissionRefusedError(_explain_refusal(token))
    member = Member(user=membership.user, team=membership.team, role=membership.role, token=token)
    member.require(Role.MEMBER, to="finish the import that was sent")
    return member


def _explain_refusal(token: ApiToken | None) -> str:
    if token is None:
        return (
            "the sender of the file left the team or was deactivated before the import had ended; "
            "send it again as another member"
        )
    return (
        f"the token {token} was revoked or has expired, or its owner left the team or was "
        "deactivated, before the import had ended; send the file again with another token"
    )


@contextmanager
def _open_import_file(row: ResultImport) -> Iterator[Path]:
    # A converted history has the format of Pitwall, whatever the name of the file is.
    name = CONVERTED if row.converted else row.name
    suffixes = "".join(PurePath(name).suffixes)[-20:]
    with NamedTemporaryFile(dir=_get_import_folder(), prefix=f"{row.pk}-", suffix=suffixes) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for (content,) in row.parts.order_by("number").values_list("content").iterator(1):
            file.write(content)
        file.flush()
        yield Path(file.name)


def _get_import_folder() -> Path:
    folder = Path(settings.DATA_DIR) / "imports"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
