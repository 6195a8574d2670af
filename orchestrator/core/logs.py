"""Log lines as JSON objects, with the ids of the current work: run, job, task, request.

No line contains a secret that Pitwall issued, such as the one in the path of an invitation.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType

from orchestrator.core.issued_secrets import redact_secrets

_NOTHING: Mapping[str, str] = MappingProxyType({})
_about: ContextVar[Mapping[str, str]] = ContextVar("log_context", default=_NOTHING)


@contextmanager
def logging_about(**ids: object) -> Iterator[None]:
    """Add `ids` to every log line of the block, in addition to those of enclosing blocks."""
    token = _about.set({**_about.get(), **{name: str(value) for name, value in ids.items()}})
    try:
        yield
    finally:
        _about.reset(token)


def log_context() -> Mapping[str, str]:
    """Return the ids of the blocks around the caller."""
    return _about.get()


def redact_record(record: logging.LogRecord) -> bool:
    """Redact secrets in the message of a record, and return True, which keeps the record.

    It is a filter for loggers whose handlers have formatters of another library.
    """
    record.msg, record.args = redact_secrets(record.getMessage()), None
    return True


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object per line.

    Fields: `at` (UTC), level, logger, message, the ids, and `trace` (as Python prints it) if there
    is one. An id never replaces another field.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            **log_context(),
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return redact_secrets(json.dumps(line, ensure_ascii=False))


class LineFormatter(logging.Formatter):
    """Formats a record for people: the ids follow the message in brackets."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        ids = " ".join(f"{name}={value}" for name, value in log_context().items())
        line = super().formatMessage(record)
        return f"{line} [{ids}]" if ids else line

    def format(self, record: logging.LogRecord) -> str:
        return redact_secrets(super().format(record))


#: The values of PITWALL_LOG_FORMAT.
FORMATS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "line": {
            "()": "orchestrator.core.logs.LineFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
        },
        "json": {"()": "orchestrator.core.logs.JsonFormatter"},
    }
)
