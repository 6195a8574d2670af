"""Idempotency keys: a repeated request does not create an object again."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

from django.http import HttpResponse
from ninja.responses import NinjaJSONEncoder, Status
from pydantic import StringConstraints, TypeAdapter, ValidationError

from orchestrator.api.auth import CallerRequest
from orchestrator.api.gate import Rules
from orchestrator.api.schemas.common import SHOWN_ONCE
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.idempotency import answer_once

HEADER = "Idempotency-Key"
DESCRIPTION = "With the same key, repeated requests create only one object."
Key = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x20-\x7e]*$")]
_KEY = TypeAdapter(Key)


def run_once(view: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function of an operation: a repeat gets the answer of the first request.

    Fields that are returned only once are null in the repeat.
    """

    @wraps(view)
    def answered(request: CallerRequest, **values: Any) -> Any:
        rules: Rules = request.rules  # type: ignore[attr-defined]
        key = request.headers.get(HEADER)
        if key is None or not rules.once:
            return view(request, **values)
        caller = request.auth
        responses: list[Status[Any]] = []

        def make() -> dict[str, Any]:
            responses.append(view(request, **values))
            return _build_stored_response(responses[0])

        answer, is_new = answer_once(
            member=caller.member,
            token=caller.token,
            key=_check_key(key),
            request=[request.method, request.path, request.body.decode(errors="replace")],
            make=make,
        )
        if is_new:
            return responses[0]
        response = HttpResponse(
            json.dumps(answer["body"]), status=answer["status"], content_type="application/json"
        )
        response.headers["Idempotency-Replayed"] = "true"
        return response

    return answered


def _build_stored_response(result: Status[Any]) -> dict[str, Any]:
    fields = type(result.value).model_fields.items()
    secret = [name for name, field in fields if SHOWN_ONCE in field.metadata]
    # Encode it as the first answer is, so numbers are equal to the digit.
    body = json.loads(json.dumps(result.value.model_dump(), cls=NinjaJSONEncoder))
    return {"status": result.status_code, "body": body | dict.fromkeys(secret)}


def _check_key(key: str) -> str:
    try:
        return _KEY.validate_python(key)
    except ValidationError as error:
        raise InvalidRequestError(
            "expected 1 to 200 printable ASCII characters", field=HEADER
        ) from error
