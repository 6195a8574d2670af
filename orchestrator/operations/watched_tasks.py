"""Signals of every task: its log lines carry its name, and its time is counted."""

import time
from typing import Any

from celery import Task

from orchestrator.core.counting import observe
from orchestrator.core.logs import logging_about
from orchestrator.core.spans import span
from orchestrator.operations.stuck_threads import BUSY


class WatchedTask(Task):
    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.name.rpartition(".")[2]
        began = time.perf_counter()
        with logging_about(task=name, task_id=self.request.id or ""), span(f"task {name}"):
            BUSY.begin()
            try:
                return super().__call__(*args, **kwargs)
            finally:
                BUSY.end()
                observe("pitwall_task_seconds", time.perf_counter() - began, task=name)
