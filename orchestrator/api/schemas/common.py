"""Shapes that several endpoints share."""

import re
from datetime import date
from typing import Annotated

from django.conf import settings
from django.urls import reverse
from ninja import Schema
from pydantic import BeforeValidator, Field, StringConstraints
from pydantic import Strict as Exactly

from orchestrator.benchmarks.models import Case, Commit

#: Text of a client: never empty, and without the NUL that PostgreSQL cannot store.
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


#: What clients send as JSON is of the type that it is said to be: `true` is no number, "1" none.
Flag = Annotated[bool, Exactly()]
Whole = Annotated[int, Exactly()]
Number = Annotated[float, Exactly()]


#: As much as a column of the database holds.
MOST_WHOLE = 2**31 - 1


#: Marks a field of an answer that nothing keeps, such as the secret of what was just made.
TOLD_ONCE = object()
ToldOnce = Annotated[
    str | None,
    TOLD_ONCE,
    Field(
        description="Returned only once: null if the request is repeated with an idempotency key."
    ),
]


class Fault(Schema):
    field: str | None
    detail: str


class Problem(Schema):
    """A refusal (RFC 9457): `detail` says what happened and what to do about it.

    `errors` lists all that is wrong where that is more than one thing.
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
    """One cell of a benchmark's matrix; `key` is the same for as long as its parameters are."""

    key: str
    label: str
    parameters: dict[str, str | int | float | bool]


def commit_out(commit: Commit) -> CommitOut:
    return CommitOut(commit=commit.sha, short=commit.short_sha, subject=commit.subject)


def case_out(case: Case) -> CaseOut:
    return CaseOut(key=case.key, label=case.label, parameters=case.parameters)


def api_url(path: str) -> str:
    return f"/api/v1/{path}"


def web_url(page: str, *args: object, **named: object) -> str:
    """The address of a page of the web UI, by the name that it has there."""
    return settings.BASE_URL + reverse(page, args=args, kwargs=named)


def _day(value: object) -> object:
    """Pydantic takes a number for seconds since 1970, which nobody means who asks for a day."""
    if isinstance(value, str) and not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        raise ValueError("expected a day such as 2026-11-22")
    return value


#: A day in UTC.
Day = Annotated[date, BeforeValidator(_day)]
