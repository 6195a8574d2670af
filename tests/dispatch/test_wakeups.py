"""The messages that wake workers: which queue they wait in, and how many wait at once."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from queue import Empty
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from orchestrator.config.celery import app
from orchestrator.database.shared_redis import build_redis_key, connect_redis
from orchestrator.database.task_messages import send_task
from orchestrator.dispatch import tasks, wakeups
from orchestrator.dispatch.plan import MAX_POLL_FAILURES
from orchestrator.runs.models import Job
from orchestrator.runs.states import JobState
from tests.support.factories import Personas
from tests.support.hostile_host import answer, job_on_hostile_host

Committing = Callable[..., AbstractContextManager[object]]
DUPLICATES = 100


@pytest.fixture(autouse=True)
def empty_queues() -> Iterator[None]:
    """Other tests leave messages, which no worker takes."""
    _forget_messages()
    yield
    _forget_messages()


@pytest.fixture
def job(personas: Personas, tmp_path: Path, data_dir: Path) -> Job:
    job = job_on_hostile_host(personas, tmp_path)
    answer(job)
    return job


def _forget_messages() -> None:
    _take_messages()
    redis = connect_redis()
    for mark in redis.scan_iter(build_redis_key("waits:*")):
        redis.delete(mark)


def _take_messages() -> list[str]:
    """Return the tasks of all waiting messages, and remove the messages."""
    queues = (settings.CELERY_TASK_DEFAULT_QUEUE, *settings.LONG_QUEUES)
    return [task for queue in queues for task in _take_from(queue)]


def _take_from(queue: str) -> list[str]:
    names = []
    with app.connection_for_read() as broker:
        waiting = broker.SimpleQueue(queue)
        try:
            while True:
                message = waiting.get_nowait()
                names.append(message.headers["task"])
                message.ack()
        except Empty:
            return names


def _advance(job: Job, committing: Committing) -> list[str]:
    with committing(execute=True):
        tasks.advance(str(job.pk))
    return _take_messages()


def test_a_message_about_a_job_that_is_not_due_sends_nothing(
    job: Job, django_capture_on_commit_callbacks: Committing
) -> None:
    Job.objects.filter(pk=job.pk).update(poll_at=None)
    assert _advance(job, django_capture_on_commit_callbacks) == []


def test_a_poll_only_sends_the_next_poll(
    job: Job, django_capture_on_commit_callbacks: Committing
) -> None:
    assert _advance(job, django_capture_on_commit_callbacks) == [wakeups.ADVANCE]


def test_a_job_that_leaves_its_hosts_wakes_the_queue_and_the_use_of_its_results(
    job: Job, django_capture_on_commit_callbacks: Committing
) -> None:
    Job.objects.filter(pk=job.pk).update(failures=MAX_POLL_FAILURES, poll_at=Now())
    sent = _advance(job, django_capture_on_commit_callbacks)
    assert sent == [wakeups.PUMP, wakeups.PROCESS_RESULTS]
    assert Job.objects.get(pk=job.pk).state == JobState.QUEUED


def test_a_job_that_is_woken_many_times_has_one_message(
    job: Job, django_capture_on_commit_callbacks: Committing
) -> None:
    with (
        CaptureQueriesContext(connection) as queries,
        django_capture_on_commit_callbacks(execute=True),
    ):
        for _ in range(DUPLICATES):
            wakeups.wake_job(job.pk)
        wakeups.wake_job(UUID(int=1))
    assert len(queries) == 0
    assert _take_messages() == 2 * [wakeups.ADVANCE]


def test_a_wake_up_after_the_begin_of_a_task_is_a_new_message(
    job: Job, django_capture_on_commit_callbacks: Committing
) -> None:
    """The task that runs may have read the database before the change."""
    send_task(wakeups.ADVANCE, str(job.pk))
    sent = _advance(job, django_capture_on_commit_callbacks)
    assert sent == 2 * [wakeups.ADVANCE], "the first message, and the next poll"
    send_task(wakeups.ADVANCE, str(job.pk))
    assert _take_messages() == [wakeups.ADVANCE]


def test_a_message_that_was_lost_is_sent_again_after_its_life() -> None:
    send_task(wakeups.PUMP)
    [mark] = connect_redis().scan_iter(build_redis_key("waits:*"))
    assert 0 < int(connect_redis().ttl(mark)) <= 20  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("tasks.pump", settings.CELERY_TASK_DEFAULT_QUEUE),
        ("tasks.advance", settings.CELERY_TASK_DEFAULT_QUEUE),
        ("tasks.probe_host", settings.CELERY_TASK_DEFAULT_QUEUE),
        ("background_tasks.process_results", settings.BACKGROUND_QUEUE),
        ("background_tasks.prune_results", settings.BACKGROUND_QUEUE),
        ("background_tasks.fetch_repositories", settings.FETCH_QUEUE),
    ],
)
def test_a_task_waits_in_the_queue_of_its_worker(name: str, queue: str) -> None:
    app.send_task(f"orchestrator.dispatch.{name}")
    assert _take_from(queue) == [f"orchestrator.dispatch.{name}"]
    assert _take_messages() == []


def test_each_tick_is_a_task_that_exists() -> None:
    app.loader.import_default_modules()
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)
