"""How gunicorn serves Pitwall: `gunicorn --config python:orchestrator.config.serving …wsgi`.

Options of its command line count before these.
"""

import logging
import os
from typing import Any

from orchestrator.core.logs import FORMATS, redact_record
from orchestrator.operations.garbage import exclude_loaded_objects
from orchestrator.operations.process_life import begin_process, end_process
from orchestrator.serving.answers import MOST_LINE_BYTES
from orchestrator.serving.worker import Worker

wsgi_app = "orchestrator.config.wsgi"
workers = os.cpu_count() or 1
# Of requests that are handled: slow clients, waiting requests and probes need none of them.
threads = 8
# Open at once in a process; most of them are idle, or wait (`?wait=`).
worker_connections = 2000
# Answers are kept for slow clients by the worker, which files sent by the kernel would pass by.
sendfile = False
preload_app = True
keepalive = 60
graceful_timeout = 5
# gunicorn's own door for commands, in the home folder, which containers share. Nobody comes by it.
control_socket_disable = True
# What is longer is refused before Pitwall sees it, see `Worker`.
limit_request_line = MOST_LINE_BYTES

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


def pre_fork(server: Any, worker: Any) -> None:
    """A search for garbage would copy the objects that the processes share."""
    exclude_loaded_objects()


def post_fork(server: Any, worker: Any) -> None:
    begin_process("web")


def worker_exit(server: Any, worker: Any) -> None:
    end_process()


worker_class = Worker
