"""Who asks: the bearer token of a request, as a member of a team."""

from dataclasses import dataclass

from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import ApiToken
from orchestrator.accounts.selectors import member_for_token
from orchestrator.accounts.services import note_token_use
from orchestrator.api.limits import TooManyRequestsError, count_request
from orchestrator.core.errors import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The token that came with a request, and the member that it stands for."""

    member: Member
    token: ApiToken


class CallerRequest(HttpRequest):
    """A request that has passed `BearerToken`."""

    auth: Caller


class BearerToken(HttpBearer):
    """`Authorization: Bearer pw_…`, with a token made in the team's settings."""

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        try:
            member, api_token = member_for_token(token.strip())
        except NotFoundError as error:
            raise AuthenticationError(message=str(error)) from error
        rate = count_request(api_token.pk)
        request.rate = rate  # type: ignore[attr-defined]
        if rate is not None and rate.is_exceeded:
            raise TooManyRequestsError(rate)
        note_token_use(token=api_token)
        return Caller(member=member, token=api_token)
