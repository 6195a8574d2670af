"""The addresses at which clients of Codespeed send results, with the answers that they expect.

The token is the password of HTTP Basic authentication, as clients of Codespeed send one; a bearer
token is accepted too.
"""

import base64
import binascii
import json
from collections.abc import Callable
from http import HTTPStatus

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from ninja.errors import AuthenticationError

from orchestrator.api.auth import Caller, authenticate_token
from orchestrator.api.errors import STATUS_OF
from orchestrator.api.rate_limits import TooManyRequestsError
from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.measurements.codespeed_results import store_codespeed_results

#: A token needs the same permissions as for this operation.
OPERATION = "POST /results"
TEXT = "text/plain; charset=utf-8"
_MISSING = (
    "send an API token as the password of HTTP Basic authentication (any user name), or as "
    "Authorization: Bearer"
)
#: Codespeed answers 400 to results that it cannot store.
_STATUS = {HTTPStatus.UNPROCESSABLE_ENTITY: HTTPStatus.BAD_REQUEST}


@csrf_exempt
@require_POST
def add_results(request: HttpRequest) -> HttpResponse:
    """Store the results in the form field `json`: one or a list of them."""
    return _answer(request, read_form_json, "All result data saved successfully\n")


@csrf_exempt
@require_POST
def add_result(request: HttpRequest) -> HttpResponse:
    """Store the result whose fields are those of the form."""
    return _answer(request, read_form_fields, "Result data saved successfully\n")


def _answer(
    request: HttpRequest, read: Callable[[HttpRequest], bytes], success: str
) -> HttpResponse:
    try:
        caller = authenticate_token(request, _read_token(request), OPERATION)
        _store(caller, read(request))
    except AuthenticationError as error:
        response = _refuse(HTTPStatus.UNAUTHORIZED, str(error))
        response["WWW-Authenticate"] = 'Basic realm="pitwall"'
        return response
    except TooManyRequestsError as error:
        response = _refuse(HTTPStatus.TOO_MANY_REQUESTS, str(error))
        error.rate.set_headers(response)
        return response
    except PitwallError as error:
        statuses = (STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)
        status = next(statuses, HTTPStatus.INTERNAL_SERVER_ERROR)
        return _refuse(_STATUS.get(status, status), str(error))
    except (RequestDataTooBig, SuspiciousOperation) as error:
        return _refuse(HTTPStatus.BAD_REQUEST, f"invalid request: {error}")
    return HttpResponse(success, status=HTTPStatus.ACCEPTED, content_type=TEXT)


def _store(caller: Caller, content: bytes) -> None:
    store_codespeed_results(member=caller.member, content=content, token=caller.token.name)


def _read_token(request: HttpRequest) -> str:
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer" and text.strip():
        return text
    if kind.lower() != "basic":
        raise AuthenticationError(message=_MISSING)
    try:
        _, _, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise AuthenticationError(message=_MISSING) from error
    if not password:
        raise AuthenticationError(message=_MISSING)
    return password


def read_form_json(request: HttpRequest) -> bytes:
    """Return the JSON of the form field; InvalidRequestError if it is missing."""
    text = request.POST.get("json")
    if text is None:
        raise InvalidRequestError("the form field json is missing", field="json")
    return text.encode(errors="surrogatepass")


def read_form_fields(request: HttpRequest) -> bytes:
    """Return the fields of the form as JSON."""
    return json.dumps(request.POST.dict()).encode()


def _refuse(status: HTTPStatus, message: str) -> HttpResponse:
    return HttpResponse(f"{message}\n", status=status, content_type=TEXT)
