"""A message before it is formatted for a channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One event in one line of plain text, with the address of its page."""

    text: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`data` are the events in the form for webhooks; each has a line."""

    title: str
    lines: Sequence[Line]
    data: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """The body of a POST, or the text of an e-mail."""

    body: str
    content_type: str = "application/json"
