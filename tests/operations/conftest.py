"""Redis is the tests' own; what other tests counted there or said is under another queue."""

import pytest

from orchestrator.core import counting
from orchestrator.core.ids import new_id


@pytest.fixture(autouse=True)
def own_queue(settings):
    settings.CELERY_TASK_DEFAULT_QUEUE = f"test-{new_id()}"
    counting.drain()
    return settings.CELERY_TASK_DEFAULT_QUEUE
