"""Writes of connections by members."""

import re
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError
from orchestrator.core.issued_secrets import Kind, new_secret
from orchestrator.fleet.vault import seal
from orchestrator.forges.models import (
    BenchmarkRequest,
    Connection,
    ForgeKind,
    PullRequest,
    RequestState,
)
from orchestrator.forges.selectors import find_connection, load_connection, request_for
from orchestrator.runs.selectors import load_run
from orchestrator.transport.http import ForbiddenAddressError, check_web_address, refuse_internal

API_URLS = {
    ForgeKind.GITHUB: "https://api.github.com",
    ForgeKind.GITLAB: "https://gitlab.com/api/v4",
}
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)+", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_BUDGET = 24 * 60
#: As many characters as the column holds.
_LONGEST_HOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConnection:
    """An empty `api_url` is the forge's default; an empty token keeps the present one."""

    kind: str
    repository: str
    api_url: str = ""
    token: str = ""
    allowed_users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    budget_minutes: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedConnection:
    """`secret` is for the forge's webhook: shown once, and empty if there was one already."""

    connection: Connection
    secret: str


@transaction.atomic
def save_connection(*, member: Member, project: Project, new: NewConnection) -> SavedConnection:
    member.require(Role.MAINTAINER, to="connect a project with its forge")
    fields = _check_connection(new)
    old = find_connection(member, project)
    if old is not None and not new.token and old.api_url != fields["api_url"]:
        # Otherwise a member who changes the address would get the token sent to it.
        raise InvalidRequestError(
            "the address has changed: enter the token for it as well", field="token"
        )
    secret = "" if old else new_secret(Kind.FORGE_WEBHOOK).text
    connection, _ = Connection.objects.update_or_create(
        project=project,
        defaults={**fields, "created_by": member.actor, "problem": ""},
        create_defaults={**fields, "created_by": member.actor, "created_at": utc_now()},
    )
    if new.token:
        connection.sealed_token = seal(connection, "sealed_token", new.token)
    if secret:
        connection.sealed_secret = seal(connection, "sealed_secret", secret)
    connection.save(update_fields=["sealed_token", "sealed_secret"])
    record_audit(member=member, action="forge.connected", subject=connection)
    return SavedConnection(connection=connection, secret=secret)


@transaction.atomic
def renew_secret(*, member: Member, project: Project) -> str:
    """Create a new secret for the webhook; signatures with the old one are refused from now on."""
    member.require(Role.MAINTAINER, to="generate a new webhook secret")
    connection = load_connection(member, project)
    secret = new_secret(Kind.FORGE_WEBHOOK).text
    Connection.objects.filter(pk=connection.pk).update(
        sealed_secret=seal(connection, "sealed_secret", secret)
    )
    record_audit(member=member, action="forge.secret_renewed", subject=connection)
    return secret


@transaction.atomic
def disconnect(*, member: Member, project: Project) -> None:
    member.require(Role.MAINTAINER, to="disconnect a project from its forge")
    connection = load_connection(member, project)
    record_audit(member=member, action="forge.disconnected", subject=connection)
    connection.delete()


@transaction.atomic
def approve(*, member: Member, request_id: UUID, sha: str) -> BenchmarkRequest:
    """Allow a fork's commit to be measured: only the one that the member has reviewed."""
    member.require(Role.MEMBER, to="approve a benchmark of a fork")
    request = request_for(member, request_id)
    waiting = BenchmarkRequest.objects.filter(
        pk=request.pk, state=RequestState.WAITING, head_sha=sha
    )
    if not waiting.update(state=RequestState.APPROVED, approved_by=member.actor, message=""):
        raise ConflictError("this no longer waits for an approval; reload the page")
    _wake(request.pull)
    record_audit(
        member=member, action="benchmark_request.approved", subject=_build_subject(request)
    )
    return request


@transaction.atomic
def decline(*, member: Member, request_id: UUID) -> BenchmarkRequest:
    member.require(Role.MEMBER, to="decline a benchmark of a fork")
    request = request_for(member, request_id)
    waiting = BenchmarkRequest.objects.filter(pk=request.pk, state=RequestState.WAITING)
    if not waiting.update(state=RequestState.DECLINED, message="A member of the team declined it."):
        raise ConflictError("this no longer waits for an approval; reload the page")
    _wake(request.pull)
    record_audit(
        member=member, action="benchmark_request.declined", subject=_build_subject(request)
    )
    return request


@transaction.atomic
def report_run(*, member: Member, run_id: UUID, number: int) -> BenchmarkRequest:
    """Report a run on a pull request that was started by another system, such as its CI.

    It may be called again: a run is reported on one pull request only.
    """
    member.require(Role.MEMBER, to="report a run on a pull request")
    run = load_run(member, run_id)
    contender = run.variants.filter(position=1).select_related("commit").first()
    connection = load_connection(member, run.definition.benchmark.project)
    if contender is None:
        raise InvalidRequestError("this run has one commit only: there is nothing to report")
    if connection.sealed_token is None:
        raise ConflictError(f"Pitwall has no token for {connection}; a maintainer adds one")
    pull, _ = PullRequest.objects.get_or_create(connection=connection, number=number)
    request, is_new = BenchmarkRequest.objects.get_or_create(
        run=run,
        defaults={
            "pull": pull,
            "note_id": str(run.pk),
            "requested_by": member.user.get_username()[:100],
            "benchmark": run.definition.benchmark.slug,
            "head_sha": contender.commit.sha,
            "state": RequestState.STARTED,
            "at": utc_now(),
        },
    )
    if request.pull_id != pull.pk:
        raise ConflictError(f"this run is already reported on {request.pull}")
    if is_new:
        _wake(pull)
        record_audit(member=member, action="benchmark_request.reported", subject=request)
    return request


def _wake(pull: PullRequest) -> None:
    PullRequest.objects.filter(pk=pull.pk).update(next_at=Now(), tries=0)


def _build_subject(request: BenchmarkRequest) -> str:
    return f"{request} {request.head_sha[:10]}, requested by {request.requested_by}"


def _check_connection(new: NewConnection) -> dict[str, object]:
    if new.kind not in ForgeKind.values:
        raise InvalidRequestError(f"expected one of {', '.join(ForgeKind.values)}", field="kind")
    if not _REPOSITORY.fullmatch(new.repository) or len(new.repository) > 200:
        raise InvalidRequestError("expected a name such as owner/name", field="repository")
    for user in new.allowed_users:
        if not _USER.fullmatch(user):
            raise InvalidRequestError(f"{user!r} is not a user name", field="allowed_users")
    if any(len(host) > _LONGEST_HOST for host in new.hosts):
        raise InvalidRequestError(f"a name has at most {_LONGEST_HOST} characters", field="hosts")
    if not 1 <= new.budget_minutes <= MOST_BUDGET:
        raise InvalidRequestError(f"expected 1 to {MOST_BUDGET} minutes", field="budget_minutes")
    return {
        "kind": new.kind,
        "api_url": _build_api_url(new),
        "repository": new.repository,
        "allowed_users": list(dict.fromkeys(new.allowed_users)),
        "hosts": list(dict.fromkeys(new.hosts)),
        "budget_minutes": new.budget_minutes,
    }


def _build_api_url(new: NewConnection) -> str:
    url = (new.api_url or API_URLS.get(ForgeKind(new.kind), "")).rstrip("/")
    if not url:
        raise InvalidRequestError(
            "enter the address of its API, such as https://git.example.org/api/v1", field="api_url"
        )
    check_web_address(url, field="api_url")
    networks = settings.ALLOWED_INTERNAL_NETWORKS
    if url.startswith("http:") and not networks:
        raise InvalidRequestError("expected https: a token is sent there", field="api_url")
    try:
        refuse_internal(url, allowed=networks)
    except ForbiddenAddressError as error:
        raise InvalidRequestError(str(error), field="api_url") from error
    return url
