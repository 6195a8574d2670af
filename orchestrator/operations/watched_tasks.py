"""What all tasks share: a name in log lines, a time in metrics, and a quiet end in an outage."""

import logging
import time
from typing import Any

from celery import Task

from orchestrator.core.counting import observe
from orchestrator.core.logs import logging_about
from orchestrator.core.spans import span
from orchestrator.database.task_messages import begin_task
from orchestrator.operations.outages import is_outage
from orchestrator.operations.stuck_threads import BUSY

logger = logging.getLogger(__name__)


class WatchedTask(Task):
    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Execute the task. Return None if PostgreSQL or Redis does not answer.

        Each task is idempotent and is sent again. Of a task that fails, Celery copies the whole
        traceback, about 1 MB each, and an outage fails the tasks of all threads.
        """
        # Before the task reads anything: a later wake-up is another message.
        begin_task(self.name, args)
        name = self.name.rpartition(".")[2]
        with logging_about(task=name, task_id=self.request.id or ""):
            try:
                return self._execute(name, *args, **kwargs)
            except Exception as error:
                if not is_outage(error):
                    raise
                logger.error("task %s did not end: %s", name, error)
                return None

    def _execute(self, name: str, *args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        with span(f"task {name}"):
            BUSY.begin()
            try:
                return super().__call__(*args, **kwargs)
            finally:
                BUSY.end()
                observe("pitwall_task_seconds", time.perf_counter() - began, task=name)
