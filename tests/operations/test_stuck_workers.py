"""A worker in which all threads hang is not said to be alive."""

import threading
from typing import Any

from django.conf import settings as configured

from orchestrator.config.celery import app
from orchestrator.operations import busy, pulse
from orchestrator.operations.heard import forget, heard, own_name
from orchestrator.operations.our_redis import our_redis
from orchestrator.operations.watched_tasks import WatchedTask


class Hanging(WatchedTask):
    name = "orchestrator.dispatch.tasks.hanging"

    def run(self, released: threading.Event) -> None:
        released.wait(60)


def _is_heard() -> bool:
    known = heard(our_redis(), configured.CELERY_TASK_DEFAULT_QUEUE)
    return any(each.name == own_name() and each.kind == "worker" for each in known)


def test_it_is_silent_while_all_its_threads_hang(settings: Any, monkeypatch: Any) -> None:
    settings.CELERY_WORKER_CONCURRENCY = 2
    monkeypatch.setattr(pulse, "STUCK_S", 0.0)
    monkeypatch.setattr(busy, "BUSY", busy.Busy())
    monkeypatch.setattr("orchestrator.operations.watched_tasks.BUSY", busy.BUSY)
    monkeypatch.setattr(pulse, "BUSY", busy.BUSY)
    forget(our_redis(), configured.CELERY_TASK_DEFAULT_QUEUE, "worker", own_name())
    released = threading.Event()
    task = app.register_task(Hanging())
    threads = [threading.Thread(target=task, args=(released,)) for _ in range(2)]
    threads[0].start()
    try:
        pulse.Pulse("worker").beat_once()
        assert _is_heard()
        forget(our_redis(), configured.CELERY_TASK_DEFAULT_QUEUE, "worker", own_name())
        threads[1].start()
        while not busy.BUSY.is_stuck(2, 0.0):
            pass
        pulse.Pulse("worker").beat_once()
        assert not _is_heard()
    finally:
        released.set()
        for thread in threads:
            thread.join()
    pulse.Pulse("worker").beat_once()
    assert _is_heard()
    forget(our_redis(), configured.CELERY_TASK_DEFAULT_QUEUE, "worker", own_name())
