"""The messages that a step of a job sends."""

from pathlib import Path
from queue import Empty

import pytest
from django.conf import settings
from django.db.models.functions import Now

from orchestrator.config.celery import app
from orchestrator.dispatch import tasks
from orchestrator.dispatch.plan import MAX_POLL_FAILURES
from orchestrator.runs.models import Job
from orchestrator.runs.states import JobState
from tests.support.factories import Personas
from tests.support.hostile_host import answer, job_on_hostile_host


@pytest.fixture
def job(personas: Personas, tmp_path: Path, data_dir: Path) -> Job:
    job = job_on_hostile_host(personas, tmp_path)
    answer(job)
    _take_messages()
    return job


def _take_messages() -> list[str]:
    """Return the names of the tasks that were sent, and remove their messages."""
    names = []
    with app.connection_for_read() as connection:
        waiting = connection.SimpleQueue(settings.CELERY_TASK_DEFAULT_QUEUE)
        try:
            while True:
                message = waiting.get_nowait()
                names.append(message.headers["task"])
                message.ack()
        except Empty:
            return names


def _advance(job: Job) -> list[str]:
    tasks.advance(str(job.pk))
    return _take_messages()


def test_a_message_about_a_job_that_is_not_due_sends_nothing(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(poll_at=None)
    assert _advance(job) == []


def test_a_poll_only_sends_the_next_poll(job: Job) -> None:
    assert _advance(job) == [tasks.ADVANCE]


def test_a_job_that_leaves_its_hosts_sends_the_task_that_uses_its_results(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(failures=MAX_POLL_FAILURES, poll_at=Now())
    assert "orchestrator.dispatch.tasks.process_results" in _advance(job)
    assert Job.objects.get(pk=job.pk).state == JobState.QUEUED
