"""Process benchmark requests on pull requests, from the comment to the run and back to the forge.

A tick finds what is due and wakes a task for each pull request; one worker at a time has it. Each
step may run twice: conditional updates pin, start and report a request.
"""

import logging
import math
import time
import uuid
from datetime import timedelta
from typing import Any, NoReturn

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from orchestrator.accounts.members import Member
from orchestrator.accounts.selectors import load_member
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.fetch_requests import load_fetch, request_fetch, request_unknown
from orchestrator.benchmarks.refs import (
    TRIES_UNWATCHED,
    FetchRunningError,
    check_fetched,
    open_repository,
    resolve_after_fetch,
    resolve_ref,
)
from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.core.heartbeat import HEARTBEAT, Claim, ClaimLost
from orchestrator.core.ids import sha256_hex
from orchestrator.database.clock import read_database_time
from orchestrator.database.fair_order import select_first_of_each_team
from orchestrator.database.row_claims import build_row_claim
from orchestrator.forges.clients.base import Forge, ForgeRefusedError, Status
from orchestrator.forges.clients.registry import build_forge
from orchestrator.forges.models import BenchmarkRequest, Connection, PullRequest, RequestState
from orchestrator.forges.pr_comments import build_comment, build_status
from orchestrator.runs.models import Trigger, Until
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.services import create_run
from orchestrator.runs.states import RUN_ENDED
from orchestrator.transport.http import DeliveryError

logger = logging.getLogger(__name__)

#: A worker is considered dead if its claim was not renewed for this long.
CLAIM_S = 60.0
#: The most requests of one pull request that are processed at a time.
MOST_REQUESTS = 20
#: Interval of checks of a running run.
LOOK_EVERY = timedelta(seconds=15)
#: Interval of checks of a request that waits for a fetch.
FETCH_LOOK_EVERY = timedelta(seconds=2)
#: The most fetches for a commit: a single ref may fail or be crowded out.
MOST_FETCHES = 3
#: The longest time that a ref may wait behind those of other pull requests.
REF_PATIENCE = timedelta(hours=1)
#: Pauses after a forge did not answer, in seconds; after the last one Pitwall gives up.
PAUSES_S = (15, 60, 300, 1800, 7200)
_OPEN = (RequestState.REQUESTED, RequestState.APPROVED, RequestState.STARTED)


def load_due_pull_ids() -> list[int]:
    """Return the due pull requests that no worker has, in an order that is fair to teams."""
    due = PullRequest.objects.filter(
        _build_free_condition(), next_at__lte=Now(), connection__project__deleted_at=None
    )
    return select_first_of_each_team(due, team="connection__project__team")


def find_pull_team_id(pull_id: int) -> int | None:
    """Return the key of the team whose repository has this pull request."""
    pulls = PullRequest.objects.filter(pk=pull_id)
    return pulls.values_list("connection__project__team", flat=True).first()


def sync_pull_request(pull_id: int) -> bool:
    """Process a pull request as far as possible now. Return False if another worker has it."""
    since = time.monotonic()
    pull = _claim_pull(pull_id)
    if pull is None:
        return False
    held = PullRequest.objects.filter(pk=pull.pk, claim=pull.claim)
    kept = build_row_claim(held, until="claimed_until", lasts_s=CLAIM_S, since=since)
    try:
        with HEARTBEAT.keeping(kept) as claim:
            claim.begin("the pull request", math.inf)  # Each call of the forge has a timeout.
            _sync_claimed(pull, claim)
    except ClaimLost:
        # A member or another worker changed it. If the claim is still ours, the next tick tries
        # again.
        logger.info("the pull request %s was changed by another process or a member", pull_id)
        _release_pull(pull, timedelta(), tries=pull.tries, problem="")
    except Exception:
        logger.exception("the pull request %s could not be followed", pull_id)
        _reschedule(pull, "internal error; the server's log has the details")
    return True


def _sync_claimed(pull: PullRequest, claim: Claim) -> None:
    try:
        forge = build_forge(pull.connection)
        requests = list(pull.requests.filter(state__in=_OPEN).order_by("pk")[:MOST_REQUESTS])
        waiting = [request for request in requests if _process_request(request, pull, forge, claim)]
        _post_updates(pull, forge, claim)
    except DeliveryError as error:
        _schedule_retry(pull, error)
    except PitwallError as error:
        _stop_syncing(pull, str(error))
    else:
        still = pull.requests.filter(state__in=_OPEN).exists()
        pause = FETCH_LOOK_EVERY if waiting else LOOK_EVERY
        _release_pull(pull, pause if still else None, tries=0, problem="")


def _build_free_condition() -> Q:
    return Q(claimed_until=None) | Q(claimed_until__lt=Now())


def _claim_pull(pull_id: int) -> PullRequest | None:
    """Claim the pull request for the caller.

    Return None if another worker has it or it is not due.
    """
    due = PullRequest.objects.filter(_build_free_condition(), pk=pull_id, next_at__lte=Now())
    until = Now() + timedelta(seconds=CLAIM_S)
    if not due.update(claim=uuid.uuid4(), claimed_until=until):
        return None
    rows = PullRequest.objects.select_related("connection__project__team", "connection__created_by")
    return rows.filter(pk=pull_id).first()


def _process_request(
    request: BenchmarkRequest, pull: PullRequest, forge: Forge, claim: Claim
) -> bool:
    """Process the request, and return whether it has to wait for a fetch."""
    claim.check()
    try:
        _advance_request(request, pull, forge)
    except FetchRunningError as error:
        if error.project != pull.connection.project:  # another repository of the definition
            request_unknown(error.project)
        return True
    return False


def _advance_request(request: BenchmarkRequest, pull: PullRequest, forge: Forge) -> None:
    if request.state == RequestState.REQUESTED:
        _pin(request, pull, forge)
    if request.state == RequestState.APPROVED or _may_start(request):
        _start(request, pull, forge)
    if request.state == RequestState.STARTED and _has_ended(request):
        _change(request, state=RequestState.ENDED)


def _change(request: BenchmarkRequest, **changes: Any) -> None:
    """Update a request if it is as it was read.

    Raise ClaimLost if another worker has changed it.
    """
    same = BenchmarkRequest.objects.filter(pk=request.pk, state=request.state, run=request.run)
    if not same.update(**changes):
        raise ClaimLost
    for name, value in changes.items():
        setattr(request, name, value)


def _may_start(request: BenchmarkRequest) -> bool:
    return request.state == RequestState.REQUESTED and not request.from_fork


def _has_ended(request: BenchmarkRequest) -> bool:
    # The run may have been removed since.
    return request.run is None or request.run.state in RUN_ENDED


def _pin(request: BenchmarkRequest, pull: PullRequest, forge: Forge) -> None:
    """Pin the head commit. Later pushes were not part of the request."""
    if not request.head_sha:
        try:
            facts = forge.pull_request(pull.number)
        except (KeyError, TypeError, AttributeError) as error:
            raise ForgeRefusedError(f"its answer lacks {error}", 502) from error
        _change(
            request,
            head_sha=facts.head_sha.lower(),
            base_branch=facts.base_branch[:200],
            from_fork=facts.from_fork,
        )
    if request.from_fork:
        _change(request, state=RequestState.WAITING)


def _start(request: BenchmarkRequest, pull: PullRequest, forge: Forge) -> None:
    try:
        baseline = _find_fetched_baseline(request, pull.connection, forge.pull_ref(pull.number))
        _create_run(request, pull.connection, baseline)
    except FetchRunningError:
        raise
    except PitwallError as error:
        _change(request, state=RequestState.DECLINED, message=str(error)[:1000])


@transaction.atomic
def _create_run(request: BenchmarkRequest, connection: Connection, baseline: str) -> None:
    """Create the run, or raise ClaimLost if there is one: both are in one transaction."""
    # A concurrent worker waits here, and then finds another state.
    BenchmarkRequest.objects.select_for_update().filter(pk=request.pk).first()
    member = _load_run_member(request, connection)
    run = create_run(
        member=member, request=_run_request(request, connection, baseline), trigger=Trigger.API
    )
    subject = f"{request} {request.head_sha[:10]}, requested by {request.requested_by}"
    record_audit(member=member, action="benchmark_request.started", subject=subject)
    _change(request, run=run, state=RequestState.STARTED)


def _find_fetched_baseline(request: BenchmarkRequest, connection: Connection, ref: str) -> str:
    """Return the merge base with the target branch.

    Afterwards the commit is in the mirror, even from a fork.
    """
    repository = open_repository(connection.project)
    if not repository.has(request.head_sha):
        _check_fetched(request, connection, ref)
        if not repository.has(request.head_sha):
            _check_ref_tried(request, connection, ref)
    if not repository.has(request.head_sha):
        raise InvalidRequestError(
            f"the commit {request.head_sha[:10]} is no longer in the repository; it was "
            "replaced by a push"
        )
    resolve_ref(project=connection.project, ref=request.head_sha)
    base = repository.merge_base(request.head_sha, repository.resolve(request.base_branch))
    if base is None:
        raise InvalidRequestError(
            f"{request.head_sha[:10]} and {request.base_branch} have no commit in common"
        )
    if base == request.head_sha:
        raise InvalidRequestError(
            f"{base[:10]} is contained in {request.base_branch}: there is nothing to compare"
        )
    return base


def _check_fetched(request: BenchmarkRequest, connection: Connection, ref: str) -> None:
    """Raise FetchRunningError until a fetch for the pull request has succeeded.

    The fetch may have left the ref out: see `_check_ref_tried`.
    """
    asked_at = request.fetch_requested_at
    if asked_at is None:
        _request_fetch(request, connection, ref)
    with resolve_after_fetch(lambda: asked_at, tries=TRIES_UNWATCHED):
        check_fetched(connection.project, known=False)


def _check_ref_tried(request: BenchmarkRequest, connection: Connection, ref: str) -> None:
    """Raise FetchRunningError unless another fetch would not bring the ref either."""
    since = request.fetch_requested_at or request.at
    if ref in load_fetch(connection.project).refs and read_database_time() < since + REF_PATIENCE:
        raise FetchRunningError(connection.project)
    if request.fetches < MOST_FETCHES:
        _request_fetch(request, connection, ref)


def _request_fetch(request: BenchmarkRequest, connection: Connection, ref: str) -> NoReturn:
    with transaction.atomic():
        _change(request, fetch_requested_at=read_database_time(), fetches=request.fetches + 1)
        request_fetch(connection.project, [ref])
    raise FetchRunningError(connection.project)


def _run_request(request: BenchmarkRequest, connection: Connection, baseline: str) -> RunRequest:
    if not connection.hosts:
        raise InvalidRequestError(
            "no hosts are chosen for this: a maintainer names some in the project's settings"
        )
    return RunRequest(
        benchmark=request.benchmark,
        project=connection.project.slug,
        baseline=baseline,
        contenders=(request.head_sha,),
        hosts=tuple(connection.hosts),
        until=Until.DECIDED,
        budget_s=60.0 * connection.budget_minutes,
    )


def _load_run_member(request: BenchmarkRequest, connection: Connection) -> Member:
    """Return the member who is responsible for the run.

    For a fork it is the one who approved it, otherwise the one who set up the connection.
    """
    user = request.approved_by if request.from_fork else connection.created_by
    if user is None:
        raise InvalidRequestError(
            "the member who connected this project no longer has an account; a maintainer has to "
            "save the settings of the connection again"
        )
    return load_member(user, connection.project.team.slug)


def _post_updates(pull: PullRequest, forge: Forge, claim: Claim) -> None:
    """Write the comment and the statuses if they have changed."""
    pull.problem = ""
    told_of = pull.requests.exclude(head_sha="").select_related("run__team")
    for request in told_of[:MOST_REQUESTS]:
        claim.check()
        status = build_status(request)
        status_text = f"{status.state}: {status.text}"[:300] if status else ""
        if status is not None and status_text != request.status:
            # A token that may not set statuses may still comment.
            pull.problem = _try_status(forge, request.head_sha, status)
            BenchmarkRequest.objects.filter(pk=request.pk).update(status=status_text)
    text = build_comment(pull)
    digest = sha256_hex(text.encode())
    if digest == pull.published:
        return
    claim.check()
    try:
        comment = forge.write_comment(pull.number, pull.comment_id, text)
    except ForgeRefusedError as error:
        if error.status != 404 or not pull.comment_id:
            raise
        # A user has deleted the comment.
        comment = forge.write_comment(pull.number, "", text)
    mine = PullRequest.objects.filter(pk=pull.pk, claim=pull.claim)
    if not mine.update(comment_id=comment, published=digest):
        raise ClaimLost


def _try_status(forge: Forge, sha: str, status: Status) -> str:
    try:
        forge.set_status(sha, status)
    except ForgeRefusedError as error:
        if error.passing:
            raise
        return str(error)[:1000]
    return ""


def _schedule_retry(pull: PullRequest, error: DeliveryError) -> None:
    if isinstance(error, ForgeRefusedError) and not error.passing:
        _stop_syncing(pull, str(error))
    else:
        _reschedule(pull, str(error))


def _reschedule(pull: PullRequest, problem: str) -> None:
    """Try again later, or give up after the last try."""
    if pull.tries >= len(PAUSES_S):
        _stop_syncing(pull, problem)
        return
    pause = timedelta(seconds=PAUSES_S[pull.tries])
    _release_pull(pull, pause, tries=pull.tries + 1, problem=problem)


@transaction.atomic
def _stop_syncing(pull: PullRequest, problem: str) -> None:
    """Decline the requests that were not started. Started runs continue, but are not reported."""
    if not _release_pull(pull, None, tries=0, problem=problem):
        return
    logger.warning("%s: given up: %s", pull, problem)
    unstarted = pull.requests.filter(state__in=[RequestState.REQUESTED, RequestState.APPROVED])
    unstarted.update(state=RequestState.DECLINED, message=problem[:1000])
    pull.requests.filter(state=RequestState.STARTED).update(state=RequestState.ENDED)


def _release_pull(pull: PullRequest, pause: timedelta | None, *, tries: int, problem: str) -> bool:
    """Release the claim. Return False if another worker has it.

    If a request arrived in the meantime, its due time stays, so that it is processed at once.
    """
    mine = PullRequest.objects.filter(pk=pull.pk, claim=pull.claim)
    mine.filter(next_at=pull.next_at).update(next_at=None if pause is None else Now() + pause)
    freed = mine.update(
        claim=None, claimed_until=None, tries=tries, problem=(problem or pull.problem)[:1000]
    )
    return bool(freed)
