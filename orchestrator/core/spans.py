"""Spans for traces through all processes: operations with their times and the ids of the log.

Until a process sets where its spans go, a span costs one comparison.
"""

from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Protocol

from orchestrator.core.logs import log_context

#: Prefix of attributes, since other programs have attributes too.
PREFIX = "pitwall."


class Tracing(Protocol):
    """The interface of a tracing library."""

    def open_span(self, name: str, attributes: dict[str, str]) -> AbstractContextManager[object]:
        """Return a span of the block, as a child of the current span."""
        ...

    def mark(self, attributes: dict[str, str]) -> None:
        """Add attributes to the current span."""
        ...

    def add_past_span(
        self, name: str, attributes: dict[str, str], began: datetime, ended: datetime
    ) -> None:
        """Add a span that has ended already, as a child of the current span."""
        ...


_tracing: Tracing | None = None
_NO_SPAN: AbstractContextManager[object] = nullcontext()


def trace_with(tracing: Tracing | None) -> None:
    """Send all spans of this process to `tracing` from now on; None: create no spans."""
    global _tracing
    _tracing = tracing


def span(name: str, **more: object) -> AbstractContextManager[object]:
    """Return a span around a block: a child of the current one, with `more` and the log's ids."""
    return _NO_SPAN if _tracing is None else _tracing.open_span(name, _build_attributes(more))


def mark_span(**more: object) -> None:
    """Add the ids that the log has by now, and `more`, to the current span."""
    if _tracing is not None:
        _tracing.mark(_build_attributes(more))


def record_past_span(name: str, began: datetime | None, ended: datetime, **more: object) -> None:
    """Add a span for work that a host has reported; nothing if its start is unknown."""
    if _tracing is not None and began is not None:
        _tracing.add_past_span(name, _build_attributes(more), began, ended)


def _build_attributes(more: dict[str, object]) -> dict[str, str]:
    attributes = {**log_context(), **more}
    return {f"{PREFIX}{name}": str(value) for name, value in attributes.items()}
