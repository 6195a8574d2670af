"""Schemas that several endpoints share."""

import re
from datetime import date
from typing import Annotated

from django.conf import settings
from django.urls import reverse
from ninja import Schema
from pydantic import BeforeValidator, Field, StringConstraints
from pydantic import Strict as Exactly

from orchestrator.benchmarks.models import Case, Commit
from orchestrator.core.storable_text import StorableText

#: Text from a client: never empty, and without NUL, which PostgreSQL cannot store.
Text = Annotated[StorableText, StringConstraints(min_length=1, max_length=200)]


#: JSON input is not coerced: `true` and "1" are not numbers.
Flag = Annotated[bool, Exactly()]
Whole = Annotated[int, Exactly()]
Number = Annotated[float, Exactly()]


#: The maximum of an integer column in the database.
MOST_WHOLE = 2**31 - 1


#: Marks a field that is not stored, such as the secret of a new object.
SHOWN_ONCE = object()
ShownOnce = Annotated[
    str | None,
    SHOWN_ONCE,
    Field(
        description="Returned only once: null if the request is repeated with an idempotency key."
    ),
]


class Fault(Schema):
    field: str | None
    detail: str


class Problem(Schema):
    """A refusal (RFC 9457): `detail` has the reason and what to do.

    `errors` lists all faults if there are several.
    """

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    errors: list[Fault] = []


class CommitOut(Schema):
    commit: str
    short: str
    subject: str


class CaseOut(Schema):
    """One cell of a benchmark's matrix; `key` depends on its parameters only."""

    key: str
    label: str
    parameters: dict[str, str | int | float | bool]


def build_commit_out(commit: Commit) -> CommitOut:
    return CommitOut(commit=commit.sha, short=commit.short_sha, subject=commit.subject)


def build_case_out(case: Case) -> CaseOut:
    return CaseOut(key=case.key, label=case.label, parameters=case.parameters)


def build_api_url(path: str) -> str:
    return f"/api/v1/{path}"


def build_web_url(page: str, *args: object, **named: object) -> str:
    """Return the address of a page of the web UI by its URL name."""
    return settings.BASE_URL + reverse(page, args=args, kwargs=named)


def _check_day(value: object) -> object:
    """Refuse numbers: pydantic would read them as seconds since 1970."""
    if isinstance(value, str) and not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        raise ValueError("expected a day such as 2026-11-22")
    return value


#: A day in UTC.
Day = Annotated[date, BeforeValidator(_check_day)]
