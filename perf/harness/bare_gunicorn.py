"""The gunicorn configuration of the bare view: Pitwall's without its background threads."""

from typing import Any

from orchestrator.config import serving
from orchestrator.operations.garbage import limit_garbage

workers, threads, worker_class = serving.workers, serving.threads, serving.worker_class
preload_app, pre_fork = serving.preload_app, serving.pre_fork
keepalive, graceful_timeout = serving.keepalive, serving.graceful_timeout
limit_request_line = serving.limit_request_line


def post_fork(server: Any, worker: Any) -> None:
    limit_garbage("web")
