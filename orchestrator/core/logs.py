"""Log lines as JSON objects, with the ids of what a process works on: run, job, task, request.

No line has a secret that Pitwall handed out, such as that of an invitation in a path.
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
    """Every line that is logged in the block carries `ids`, with those of blocks around it."""
    token = _about.set({**_about.get(), **{name: str(value) for name, value in ids.items()}})
    try:
        yield
    finally:
        _about.reset(token)


def log_context() -> Mapping[str, str]:
    """The ids of the blocks around the caller."""
    return _about.get()


def redact_record(record: logging.LogRecord) -> bool:
    """A filter that keeps every record, without the secrets in its message; for loggers whose
    handlers have formatters of somebody else."""
    record.msg, record.args = redact_secrets(record.getMessage()), None
    return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line: at, level, logger, message, the ids, and a trace where there is one.

    Fields: `at` in UTC; `trace` as Python prints it. An id never takes the place of these.
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
    """The same for people: the ids in brackets after the message."""

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
