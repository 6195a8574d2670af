"""Spans: what was done when, with the ids of the log (`logs.py`), for traces through all processes.

Until a process says where its spans go, one costs a comparison.
"""

from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Protocol

from orchestrator.core.logs import log_context

#: Before the name of an attribute, as other programs have their own.
PREFIX = "pitwall."


class Tracing(Protocol):
    """Where spans go."""

    def around(self, name: str, attributes: dict[str, str]) -> AbstractContextManager[object]:
        """A span of the block, below the one around it."""
        ...

    def mark(self, attributes: dict[str, str]) -> None:
        """More attributes of the span around the caller."""
        ...

    def past(self, name: str, attributes: dict[str, str], began: datetime, ended: datetime) -> None:
        """A span of what is over, below the one around the caller."""
        ...


_tracing: Tracing | None = None
_NO_SPAN: AbstractContextManager[object] = nullcontext()


def trace_with(tracing: Tracing | None) -> None:
    """All spans of this process from now on; None: there are none."""
    global _tracing
    _tracing = tracing


def span(name: str, **more: object) -> AbstractContextManager[object]:
    """A span around a block: a child of the one around it, with the ids of the log and `more`."""
    return _NO_SPAN if _tracing is None else _tracing.around(name, _attributes(more))


def mark_span(**more: object) -> None:
    """The span around the caller gets the ids that the log has by now, and `more`."""
    if _tracing is not None:
        _tracing.mark(_attributes(more))


def past_span(name: str, began: datetime | None, ended: datetime, **more: object) -> None:
    """What a host did meanwhile, once we hear of it; nothing where its beginning is not known."""
    if _tracing is not None and began is not None:
        _tracing.past(name, _attributes(more), began, ended)


def _attributes(more: dict[str, object]) -> dict[str, str]:
    told = {**log_context(), **more}
    return {f"{PREFIX}{name}": str(value) for name, value in told.items()}
