"""Configuration of gunicorn: `gunicorn --config python:orchestrator.config.serving …wsgi`.

Options on the command line take precedence.
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
# For requests that are being handled. Slow clients, waiting requests and probes do not occupy them.
threads = 8
# Open connections per process; most of them are idle, or wait (`?wait=`).
worker_connections = 2000
# The worker keeps answers for slow clients; sendfile would bypass that.
sendfile = False
preload_app = True
keepalive = 60
graceful_timeout = 5
# gunicorn's control socket is unused. It would be in the home folder, which containers share.
control_socket_disable = True
# Longer request lines are refused before Pitwall sees them, see `Worker`.
limit_request_line = MOST_LINE_BYTES

if os.environ.get("PITWALL_LOG_FORMAT") == "json":
    # This includes the access log: gunicorn writes it if logconfig_dict is set.
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

# Access log lines contain paths, and gunicorn's formatters do not redact secrets in them.
for name in ("gunicorn.error", "gunicorn.access"):
    logging.getLogger(name).addFilter(redact_record)


def pre_fork(server: Any, worker: Any) -> None:
    """Exclude shared objects from garbage collection, which would copy their pages."""
    exclude_loaded_objects()


def post_fork(server: Any, worker: Any) -> None:
    begin_process("web")


def worker_exit(server: Any, worker: Any) -> None:
    end_process()


worker_class = Worker
