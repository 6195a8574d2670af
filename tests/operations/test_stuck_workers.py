"""A worker in which all threads hang is not said to be alive; a stuck process ends itself."""

import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured

from devstack.processes import die_with_parent
from orchestrator.config.celery import app
from orchestrator.database.shared_redis import connect_redis
from orchestrator.operations import heartbeat_thread, stuck_threads
from orchestrator.operations.heartbeats import build_process_name, delete_heartbeat, load_heartbeats
from orchestrator.operations.watched_tasks import WatchedTask
from tests.support.engine import ROOT


class Hanging(WatchedTask):
    name = "orchestrator.dispatch.tasks.hanging"

    def run(self, released: threading.Event) -> None:
        released.wait(60)


def _has_heartbeat() -> bool:
    known = load_heartbeats(connect_redis(), configured.CELERY_TASK_DEFAULT_QUEUE)
    return any(each.name == build_process_name() and each.kind == "worker" for each in known)


def test_a_worker_sends_no_heartbeat_while_all_threads_hang(
    settings: Any, monkeypatch: Any
) -> None:
    settings.CELERY_WORKER_CONCURRENCY = 2
    monkeypatch.setattr(heartbeat_thread, "STUCK_S", 0.0)
    monkeypatch.setattr(stuck_threads, "BUSY", stuck_threads.BusyThread())
    monkeypatch.setattr("orchestrator.operations.watched_tasks.BUSY", stuck_threads.BUSY)
    monkeypatch.setattr(heartbeat_thread, "BUSY", stuck_threads.BUSY)
    delete_heartbeat(
        connect_redis(), configured.CELERY_TASK_DEFAULT_QUEUE, "worker", build_process_name()
    )
    released = threading.Event()
    task = app.register_task(Hanging())
    threads = [threading.Thread(target=task, args=(released,)) for _ in range(2)]
    threads[0].start()
    try:
        heartbeat_thread.HeartbeatThread("worker").beat_once()
        assert _has_heartbeat()
        delete_heartbeat(
            connect_redis(), configured.CELERY_TASK_DEFAULT_QUEUE, "worker", build_process_name()
        )
        threads[1].start()
        while not stuck_threads.BUSY.is_stuck(2, 0.0):
            pass
        heartbeat_thread.HeartbeatThread("worker").beat_once()
        assert not _has_heartbeat()
        assert heartbeat_thread.HeartbeatThread("worker").problem() == "", (
            "a step may still be the reason"
        )
        monkeypatch.setattr(heartbeat_thread, "END_S", 0.0)
        assert (
            "all of its 2 threads have hung" in heartbeat_thread.HeartbeatThread("worker").problem()
        )
    finally:
        released.set()
        for thread in threads:
            thread.join()
    heartbeat_thread.HeartbeatThread("worker").beat_once()
    assert _has_heartbeat()
    delete_heartbeat(
        connect_redis(), configured.CELERY_TASK_DEFAULT_QUEUE, "worker", build_process_name()
    )


@pytest.mark.parametrize("kind", ["worker", "background", "beat"])
def test_a_process_with_a_stuck_main_loop_ends_itself(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {**os.environ, "PITWALL_QUEUE": configured.CELERY_TASK_DEFAULT_QUEUE}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.stuck_process", kind, str(tmp_path / "beat")],
            cwd=ROOT, env=environment, stdout=out, stderr=out,
            preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGKILL),
        )  # fmt: skip
    try:
        assert process.wait(90) == 1, log.read_text()
    finally:
        process.kill()
    text = log.read_text()
    assert "its main loop has not turned for 1 s" in text
    assert "stand_still" in text, "where it stands"


def test_a_main_loop_that_waits_for_redis_is_excused(settings: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(heartbeat_thread, "STUCK_S", 0.0)
    monkeypatch.setattr(heartbeat_thread, "MAIN_LOOP", loop := stuck_threads.MainLoop())
    assert heartbeat_thread.HeartbeatThread("beat").problem() == "", "a loop that was never noted"
    loop.note_turn()
    assert "its main loop" in heartbeat_thread.HeartbeatThread("beat").problem()
    monkeypatch.setattr(heartbeat_thread, "STUCK_S", 3600.0)
    monkeypatch.setattr(loop, "_turned", loop._turned - 7200.0)
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    heartbeat_thread.HeartbeatThread("beat").beat_once()
    assert heartbeat_thread.HeartbeatThread("beat").problem() == ""
