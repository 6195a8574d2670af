"""Rules for all operations of the API.

`wrap_operation` wraps an operation: it attaches its rules, adds the headers of the rate limit and
answers 304 if the client has the current answer. `check_shape` runs after the token check and
before the operation, so a request without a valid token learns only that it needs one.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from hashlib import blake2b
from typing import Any, Protocol

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from ninja.operation import Operation
from pydantic import BaseModel

from orchestrator.core.errors import InvalidRequestError
from orchestrator.operations.rates import Rate

Run = Callable[..., HttpResponseBase]
JSON = "application/json"
FORM = "multipart/form-data"
#: Pydantic alone also accepts white space around a number, `+3`, `1_000` and `inf`.
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


class UnsupportedMediaError(Exception):
    """The body is not of the type that the operation accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The input of an operation: names of parameters, the type of its body (None: no body).

    `numbers`: the parameters that are numbers. `once`: it creates an object, so a repeat with the
    same idempotency key must not create another.
    """

    parameters: frozenset[str]
    numbers: frozenset[str]
    media: str | None
    once: bool


class RuledRequest(Protocol):
    """A request that passes through `wrap_operation`."""

    rules: Rules
    rate: Rate | None


def build_rules(operation: Operation) -> Rules:
    sources: dict[str, Any] = {model.__ninja_param_source__: model for model in operation.models}
    names = getattr(sources.get("query"), "__ninja_flatten_map__", None) or {}
    headers = getattr(sources.get("header"), "__ninja_flatten_map__", None) or {}
    media = FORM if "file" in sources else JSON if "body" in sources else None
    makes = "POST" in operation.methods and 201 in operation.response_models
    return Rules(
        parameters=frozenset(names),
        numbers=frozenset(_iterate_numbers(sources["query"])) if names else frozenset(),
        media=media,
        once=makes and media != FORM and "Idempotency-Key" not in headers,
    )


def _iterate_numbers(model: type[BaseModel]) -> Iterator[str]:
    """Yield the names of the fields that are numbers, also of models in it."""
    schema = model.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        for name, field in part.get("properties", {}).items():
            if any(
                form.get("type") in ("integer", "number") for form in field.get("anyOf", [field])
            ):
                yield name


def wrap_operation(run: Run) -> Run:
    """Wrap the `run` of an operation."""
    operation: Operation = run.__self__  # type: ignore[attr-defined]
    rules = build_rules(operation)

    @wraps(run)
    def gated(request: HttpRequest, **values: Any) -> HttpResponseBase:
        request.rules, request.rate = rules, None  # type: ignore[attr-defined]
        response = run(request, **values)
        if isinstance(response, HttpResponse):
            response = _add_entity_tag(request, response)
        rate: Rate | None = request.rate  # type: ignore[attr-defined]
        if rate is not None:
            rate.set_headers(response)  # type: ignore[arg-type]
        return response

    return gated


def check_shape(request: HttpRequest) -> None:
    """Refuse input that would be silently ignored or misread.

    These are misspelled parameters and bodies of another type.
    """
    rules: Rules | None = getattr(request, "rules", None)
    if rules is None:
        return
    unknown = [name for name in request.GET if name not in rules.parameters]
    if unknown:
        known = ", ".join(sorted(rules.parameters)) or "none"
        raise InvalidRequestError(
            f"unknown parameter {unknown[0]!r}; known parameters: {known}", field=unknown[0]
        )
    for name in rules.numbers & request.GET.keys():
        if any(not _NUMBER.fullmatch(text) for text in request.GET.getlist(name)):
            raise InvalidRequestError("expected a number such as 20", field=name)
    sent = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if rules.media is not None and sent and sent != rules.media:
        raise UnsupportedMediaError(
            f"expected a body of the type {rules.media}, got {sent}: send the header "
            f"Content-Type: {rules.media}"
        )


def _add_entity_tag(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Add an entity tag; return 304 if the client has the same one."""
    if request.method != "GET" or response.status_code != 200:
        return response
    tag = response.headers.get("ETag")
    if tag is None:
        tag = f'"{blake2b(response.content, digest_size=12).hexdigest()}"'
        response.headers["ETag"] = tag
    response.headers.setdefault("Cache-Control", "private, no-cache")
    return get_conditional_response(request, etag=tag, response=response) or response
