"""The threads of a background worker: fetches use only some of them."""

import threading
from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.fetch_requests import load_fetch, request_fetch
from orchestrator.config.background_worker import build_command
from orchestrator.dispatch import background_tasks
from tests.support.factories import Personas, make_project


def test_fetches_leave_threads_to_other_background_tasks(
    personas: Personas, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, _ = make_project(personas.alice, tmp_path / "origin")
    request_fetch(project)
    slots = threading.BoundedSemaphore(1)
    monkeypatch.setattr(background_tasks, "_FETCH_SLOTS", slots)
    with slots:
        background_tasks.fetch_repositories()
        assert load_fetch(project).state == "queued", "its thread is free again"
    background_tasks.fetch_repositories()
    assert load_fetch(project).state == "done"
    assert slots.acquire(blocking=False), "the slot is free again"


def test_a_background_worker_has_threads_beside_those_of_fetches(settings: Any) -> None:
    command = build_command()
    assert command[command.index("--concurrency") + 1] == "16"
    queues = command[command.index("--queues") + 1].split(",")
    assert queues == [settings.BACKGROUND_QUEUE, settings.FETCH_QUEUE]
    assert settings.CELERY_TASK_DEFAULT_QUEUE not in queues, "steps of jobs have another worker"
