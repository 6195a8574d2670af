"""Authentication: the bearer token of a request, the member it belongs to, and its permissions.

This is the only place where the API checks a token's scope, its project and its owner's role,
before the request is read further. `accounts/permissions.py` has the permissions of tokens.
"""

import re
from dataclasses import dataclass
from functools import cache

from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken
from orchestrator.accounts.permissions import check_operation
from orchestrator.accounts.selectors import load_token_member
from orchestrator.accounts.services import record_token_use
from orchestrator.accounts.sign_in_log import log_wrong_token
from orchestrator.api.rate_limits import TooManyRequestsError, count_request
from orchestrator.core.errors import NotFoundError
from orchestrator.core.waits import wait_in
from orchestrator.operations.rates import Rate

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The token of a request, and its member."""

    member: Member
    token: ApiToken


class CallerRequest(HttpRequest):
    """A request that passed `BearerToken`."""

    auth: Caller


class BearerToken(HttpBearer):
    """`Authorization: Bearer pw_…`, with a token from the team's settings."""

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        return authenticate_token(request, token, name_operation(request))


def authenticate_token(request: HttpRequest, secret: str, operation: str) -> Caller:
    """Return the caller if the token may use this operation.

    Raise AuthenticationError for a token that is not valid, PermissionRefusedError for one that may
    not use it, and TooManyRequestsError beyond its rate limit.
    """
    try:
        member = load_token_member(secret.strip())
    except NotFoundError as error:
        log_wrong_token(request, str(error))
        raise AuthenticationError(message=str(error)) from error
    assert member.token is not None, "it was found by one"
    request.has_valid_token = True  # type: ignore[attr-defined]
    rate = _count_request_once(request, member.token)
    request.rate = rate  # type: ignore[attr-defined]
    if rate is not None and rate.is_exceeded:
        raise TooManyRequestsError(rate)
    record_token_use(token=member.token)
    check_operation(member, operation)
    return Caller(member=member, token=member.token)


def _count_request_once(request: HttpRequest, token: ApiToken) -> Rate | None:
    """Count a request once, even if it is handled several times while it waits."""
    wait = wait_in(request.META)
    if wait is None:
        return count_request(token.pk)
    if "rate" not in wait.memo:
        wait.memo["rate"] = count_request(token.pk)
    rate: Rate | None = wait.memo["rate"]
    return rate


def name_operation(request: HttpRequest) -> str:
    """Return `GET /runs/{run_id}`, as in the OpenAPI document and the table of permissions."""
    route = request.resolver_match.route if request.resolver_match else ""
    return f"{request.method} {_build_path(route)}"


@cache
def _build_path(route: str) -> str:
    return _PARAMETER.sub(r"{\1}", "/" + route.removeprefix("api/v1/"))
