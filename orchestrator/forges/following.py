"""What is asked for on pull requests, taken from the comment to the run and back to the forge.

A tick finds what is due; each pull request is claimed by one worker at a time, with SKIP LOCKED.
Each step may run twice: a request is pinned, started and reported by guarded writes.
"""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from orchestrator.accounts.members import Member
from orchestrator.accounts.selectors import member_for_user
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.fetching import (
    TRIES_UNWATCHED,
    FetchRunningError,
    check_fetched,
    database_now,
    names_fetched_after,
    request_fetch,
)
from orchestrator.benchmarks.refs import commit_of_ref
from orchestrator.benchmarks.services import repository_of
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.core.ids import sha256_hex
from orchestrator.forges.clients.base import Forge, ForgeRefusedError, Status
from orchestrator.forges.clients.registry import forge_of
from orchestrator.forges.models import BenchmarkRequest, Connection, PullRequest, RequestState
from orchestrator.forges.receiving import forget_old
from orchestrator.forges.telling import comment_of, status_of
from orchestrator.runs.models import Trigger, Until
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.services import create_run
from orchestrator.runs.states import RUN_ENDED
from orchestrator.transport.http import DeliveryError

logger = logging.getLogger(__name__)

#: Longer than a claimed pull request takes.
LEASE = timedelta(minutes=5)
#: So often a run under way is looked at.
LOOK_EVERY = timedelta(seconds=15)
#: And so often one that waits for a fetch.
FETCH_LOOK_EVERY = timedelta(seconds=2)
#: After so many seconds a forge that did not answer is asked again; after the last it is given up.
PAUSES_S = (15, 60, 300, 1800, 7200)
_OPEN = (RequestState.ASKED, RequestState.APPROVED, RequestState.STARTED)


def follow_due(now: datetime) -> None:
    """Takes those that are due further; one that fails by a mistake of ours stops no other."""
    due = PullRequest.objects.filter(next_at__lte=now).order_by("next_at")
    for pull_id in list(due.values_list("pk", flat=True)[:20]):
        try:
            follow(pull_id, now)
        except Exception:
            logger.exception("the pull request %s could not be followed", pull_id)
            _put_back(pull_id, now)
    forget_old(now)


def _put_back(pull_id: int, now: datetime) -> None:
    pull = PullRequest.objects.filter(pk=pull_id).first()
    if pull is None:
        return
    pull.tries += 1
    pause = PAUSES_S[min(pull.tries, len(PAUSES_S)) - 1]
    problem = "a mistake in Pitwall; the server's log has the details"
    _let_go(pull, now + timedelta(seconds=pause), tries=pull.tries, problem=problem)


def follow(pull_id: int, now: datetime) -> bool:
    """Takes a pull request as far as can be done now; False where another worker has it."""
    pull = _claimed(pull_id, now)
    if pull is None:
        return False
    try:
        forge = forge_of(pull.connection)
        requests = pull.requests.filter(state__in=_OPEN).order_by("pk")
        waiting = [request for request in requests if _waits(request, pull, forge)]
        _tell(pull, forge)
    except DeliveryError as error:
        _again(pull, error)
    except PitwallError as error:
        _refuse_all(pull, str(error))
    else:
        still = pull.requests.filter(state__in=_OPEN).exists()
        pause = FETCH_LOOK_EVERY if waiting else LOOK_EVERY
        _let_go(pull, utc_now() + pause if still else None, tries=0, problem="")
    return True


@transaction.atomic
def _claimed(pull_id: int, now: datetime) -> PullRequest | None:
    rows = PullRequest.objects.select_for_update(skip_locked=True, of=("self",))
    rows = rows.select_related("connection__project__team", "connection__created_by")
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    pull = rows.filter(free, pk=pull_id, next_at__lte=now).first()
    if pull is not None:
        pull.claimed_until = now + LEASE
        pull.save(update_fields=["claimed_until"])
    return pull


def _waits(request: BenchmarkRequest, pull: PullRequest, forge: Forge) -> bool:
    """Takes it further; whether it has to wait for a fetch."""
    try:
        _step(request, pull, forge)
    except FetchRunningError:
        return True
    return False


def _step(request: BenchmarkRequest, pull: PullRequest, forge: Forge) -> None:
    if request.state == RequestState.ASKED:
        _pin(request, pull, forge)
    if request.state == RequestState.APPROVED or _may_start(request):
        _start(request, pull, forge)
    if request.state == RequestState.STARTED and _has_ended(request):
        request.state = RequestState.ENDED
        request.save(update_fields=["state"])


def _may_start(request: BenchmarkRequest) -> bool:
    return request.state == RequestState.ASKED and not request.from_fork


def _has_ended(request: BenchmarkRequest) -> bool:
    # A run may have been removed since.
    return request.run is None or request.run.state in RUN_ENDED


def _pin(request: BenchmarkRequest, pull: PullRequest, forge: Forge) -> None:
    """What is pushed from now on is not what was asked for."""
    if not request.head_sha:
        try:
            facts = forge.pull_request(pull.number)
        except (KeyError, TypeError, AttributeError) as error:
            raise ForgeRefusedError(f"its answer lacks {error}", 502) from error
        request.head_sha, request.base_branch = facts.head_sha.lower(), facts.base_branch[:200]
        request.from_fork = facts.from_fork
    if request.from_fork:
        request.state = RequestState.WAITING
    request.save(update_fields=["head_sha", "base_branch", "from_fork", "state"])


def _start(request: BenchmarkRequest, pull: PullRequest, forge: Forge) -> None:
    connection = pull.connection
    try:
        baseline = _fetched_baseline(request, connection, forge.pull_ref(pull.number))
        with transaction.atomic():
            member = _member(request, connection)
            run = create_run(
                member=member,
                request=_run_request(request, connection, baseline),
                trigger=Trigger.API,
            )
            subject = f"{request} {request.head_sha[:10]}, asked for by {request.asked_by}"
            record_audit(member=member, action="benchmark_request.started", subject=subject)
            request.run, request.state = run, RequestState.STARTED
            request.save(update_fields=["run", "state"])
    except FetchRunningError:
        raise
    except PitwallError as error:
        request.state, request.message = RequestState.REFUSED, str(error)[:1000]
        request.run = None
        request.save(update_fields=["state", "message"])


def _fetched_baseline(request: BenchmarkRequest, connection: Connection, ref: str) -> str:
    """Where the pull request left its base; its commit, from a fork or not, is here afterwards."""
    repository = repository_of(connection.project)
    if not repository.has(request.head_sha):
        _check_fetched(request, connection, ref)
    if not repository.has(request.head_sha):
        raise InvalidRequestError(
            f"the commit {request.head_sha[:10]} is not in the repository any more; it was "
            "replaced by a push"
        )
    commit_of_ref(project=connection.project, ref=request.head_sha)
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
    """Returns once the ref of the pull request was fetched; FetchRunningError before."""
    asked_at = request.fetch_requested_at
    if asked_at is None:
        request.fetch_requested_at = database_now()
        request.save(update_fields=["fetch_requested_at"])
        request_fetch(connection.project, [ref])
        raise FetchRunningError(connection.project)
    with names_fetched_after(lambda: asked_at, tries=TRIES_UNWATCHED):
        check_fetched(connection.project, known=False)


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


def _member(request: BenchmarkRequest, connection: Connection) -> Member:
    """Who answers for the run: of a fork who approved it, else who set the connection up."""
    user = request.approved_by if request.from_fork else connection.created_by
    if user is None:
        raise InvalidRequestError(
            "who connected this project has no account any more; a maintainer saves its settings "
            "again"
        )
    return member_for_user(user, connection.project.team.slug)


def _tell(pull: PullRequest, forge: Forge) -> None:
    """The comment and the statuses, where they say something else than before."""
    pull.problem = ""
    for request in pull.requests.exclude(head_sha="").select_related("run__team")[:20]:
        status = status_of(request)
        told = f"{status.state}: {status.text}"[:300] if status else ""
        if status is not None and told != request.status:
            # Whoever may not set statuses may still comment.
            pull.problem = _try_status(forge, request.head_sha, status)
            BenchmarkRequest.objects.filter(pk=request.pk).update(status=told)
    text = comment_of(pull)
    digest = sha256_hex(text.encode())
    if digest == pull.published:
        return
    try:
        comment = forge.write_comment(pull.number, pull.comment_id, text)
    except ForgeRefusedError as error:
        if error.status != 404 or not pull.comment_id:
            raise
        # Somebody has deleted it.
        comment = forge.write_comment(pull.number, "", text)
    pull.comment_id, pull.published = comment, digest
    pull.save(update_fields=["comment_id", "published"])


def _try_status(forge: Forge, sha: str, status: Status) -> str:
    try:
        forge.set_status(sha, status)
    except ForgeRefusedError as error:
        if error.passing:
            raise
        return str(error)[:1000]
    return ""


def _again(pull: PullRequest, error: DeliveryError) -> None:
    passing = not isinstance(error, ForgeRefusedError) or error.passing
    pull.tries += 1
    if passing and pull.tries <= len(PAUSES_S):
        next_at = utc_now() + timedelta(seconds=PAUSES_S[pull.tries - 1])
        _let_go(pull, next_at, tries=pull.tries, problem=str(error))
        return
    logger.warning("%s: given up: %s", pull, error)
    unstarted = pull.requests.filter(state__in=[RequestState.ASKED, RequestState.APPROVED])
    unstarted.update(state=RequestState.REFUSED, message=str(error)[:1000])
    pull.requests.filter(state=RequestState.STARTED).update(state=RequestState.ENDED)
    _let_go(pull, None, tries=0, problem=str(error))


def _refuse_all(pull: PullRequest, why: str) -> None:
    pull.requests.filter(state__in=_OPEN).update(state=RequestState.REFUSED, message=why[:1000])
    _let_go(pull, None, tries=0, problem=why)


def _let_go(pull: PullRequest, next_at: datetime | None, *, tries: int, problem: str) -> None:
    """What was asked for meanwhile keeps its time: it is looked at again at once."""
    ours = PullRequest.objects.filter(pk=pull.pk, claimed_until=pull.claimed_until)
    ours.filter(next_at=pull.next_at).update(next_at=next_at)
    ours.update(claimed_until=None, tries=tries, problem=(problem or pull.problem)[:1000])
