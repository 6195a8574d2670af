"""How gunicorn serves Pitwall: `gunicorn --config python:orchestrator.config.serving …wsgi`.

Options of its command line count before these.
"""

import gc
import json
import logging
import os
from typing import Any

from gunicorn.http.errors import LimitRequestLine
from gunicorn.util import write_nonblock
from gunicorn.workers.gthread import ThreadWorker

from orchestrator.core.logs import FORMATS, redact_record
from orchestrator.operations.process_life import begin_process, end_process

wsgi_app = "orchestrator.config.wsgi"
workers = os.cpu_count() or 1
# A waiting request of the API (`?wait=`) holds a thread.
threads = 8
preload_app = True
keepalive = 60
graceful_timeout = 5
# gunicorn's own door for commands, in the home folder, which containers share. Nobody comes by it.
control_socket_disable = True
# Long filters of long lists; what is longer is refused before Pitwall sees it, see `Worker`.
limit_request_line = 8190

if os.environ.get("PITWALL_LOG_FORMAT") == "json":
    # Lines of requests too: gunicorn writes them wherever it is given such a table.
    logconfig_dict = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"generic": FORMATS["json"]},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "generic"}},
        "root": {"handlers": ["console"], "level": "INFO"},
        "loggers": {
            name: {"handlers": ["console"], "level": "INFO", "propagate": False}
            for name in ("gunicorn.error", "gunicorn.access")
        },
    }

# Lines of requests name paths, and gunicorn's own formatters do not redact the secrets in them.
for name in ("gunicorn.error", "gunicorn.access"):
    logging.getLogger(name).addFilter(redact_record)

#: How many objects are made before it is looked for garbage among the new ones, since Python's own
#: 700 are fewer than one page; each so many times among those that were in use then. Models that
#: know each other are garbage of that kind; with 20 and 20 it piled up for minutes and more.
GARBAGE = 20_000, 5, 5


def pre_fork(server: Any, worker: Any) -> None:
    """What was loaded once is there until the end: it is neither searched nor copied any more."""
    gc.collect()
    gc.freeze()


def post_fork(server: Any, worker: Any) -> None:
    gc.set_threshold(*GARBAGE)
    begin_process("web")


def worker_exit(server: Any, worker: Any) -> None:
    end_process()


class Worker(ThreadWorker):
    """Answers an address that is too long with a problem document, as the API does everything."""

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        if not isinstance(exc, LimitRequestLine):
            super().handle_error(req, client, addr, exc)
            return
        self.log.warning("An address is too long: %s", exc)
        try:
            write_nonblock(client, _TOO_LONG)
        except OSError:
            self.log.debug("Failed to send the error message.")


def _too_long() -> bytes:
    said = (
        f"the first line of this request has more than {limit_request_line} bytes: "
        "ask for less at once, or send what is long in a body"
    )
    problem = {"type": "about:blank", "title": "URI Too Long", "status": 414, "detail": said}
    body = json.dumps(problem).encode()
    head = (
        "HTTP/1.1 414 URI Too Long\r\nConnection: close\r\n"
        f"Content-Type: application/problem+json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


_TOO_LONG = _too_long()
worker_class = Worker
