"""What is to be said, before any channel has given it a form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One event in one line of plain text, and the page that tells more."""

    text: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`data` are the events as webhooks are sent them; each has a line."""

    title: str
    lines: Sequence[Line]
    data: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """The body of a POST, or the text of an e-mail."""

    body: str
    content_type: str = "application/json"
