"""The Celery application, and the ticks that beat sends.

Every task lasts seconds, is idempotent and may run twice or late. A tick expires if no worker took
it before the next one is due, so ticks do not pile up.
"""

import os
import sys
import warnings
from typing import Any

from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.signals import (
    beat_embedded_init,
    beat_init,
    task_prerun,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings
from django.db import close_old_connections

from orchestrator.config.broker import use_this_transport
from orchestrator.operations.process_life import begin_process, end_process
from orchestrator.operations.stuck_threads import MAIN_LOOP

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.config.settings")
# Celery would run Django's system checks and ignore what they return. They import all pages and the
# API, which workers and beat do not serve.
os.environ.setdefault("CELERY_SKIP_CHECKS", "yes")

use_this_transport()

app = Celery("pitwall", task_cls="orchestrator.operations.watched_tasks:WatchedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
for module in ("tasks", "background_tasks"):
    app.autodiscover_tasks(["orchestrator.dispatch"], related_name=module)
# Celery would close the database's connections after each task. Django keeps them for CONN_MAX_AGE,
# and checks that they still work before they are used again.
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize


@task_prerun.connect
def _close_stale_connections(**_: Any) -> None:
    close_old_connections()


@worker_ready.connect
def _watch_main_loop(sender: Any, **_: Any) -> None:
    """Note each turn of the event loop, which turns every few seconds even when idle."""
    if sender.hub is not None:
        sender.hub.on_tick.add(MAIN_LOOP.note_turn)


@worker_shutting_down.connect
def _stop_watching_main_loop(**_: Any) -> None:
    """Stop watching: the loop stands still while the last tasks end, up to an hour."""
    MAIN_LOOP.end()


@worker_ready.connect
@worker_process_init.connect
def _begin_worker(**_: Any) -> None:
    # Celery warns in nine lines about late acknowledgement at each lost connection, and no task
    # here is acknowledged late. Set it here, because a worker sets new filters when it starts.
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
    has_steps = settings.CELERY_TASK_DEFAULT_QUEUE in app.amqp.queues.consume_from
    begin_process("worker" if has_steps else "background")


@beat_init.connect
@beat_embedded_init.connect
def _begin_beat(**_: Any) -> None:
    begin_process("beat")


@worker_shutdown.connect
@worker_process_shutdown.connect
def _end_worker(**_: Any) -> None:
    end_process()


def _build_beat_entry(seconds: float, task: str) -> dict[str, object]:
    return {"task": task, "schedule": seconds, "options": {"expires": 2 * seconds}}


# Whatever a user waits for sends a wake-up message (dispatch/wakeups.py). The ticks find work that
# becomes due with time, and what a lost message left. Each costs CPU time, which may disturb a
# measurement on the same machine.
app.conf.beat_schedule = {
    "pump": _build_beat_entry(15.0, "orchestrator.dispatch.tasks.pump"),
    **{
        name.replace("_", "-"): _build_beat_entry(
            seconds, f"orchestrator.dispatch.background_tasks.{name}"
        )
        for name, seconds in (
            ("process_results", 120.0),
            ("start_due_work", 30.0),
            ("import_results", 60.0),
            ("fetch_repositories", 60.0),
            ("prune_results", 120.0),
            ("remove_ended", 300.0),
            ("remove_unused_repositories", 300.0),
        )
    },
}
