"""PostgreSQL and Redis go away under real processes: a handful of lines, and no trace."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from devstack.processes import die_with_parent
from orchestrator.core.ids import new_id
from tests.chaos.own_servers import own_postgres, own_redis
from tests.support.engine import ROOT
from tests.support.served import Served, served

#: Long enough for several ticks of the pump.
AWAY_S = 12
PATIENCE_S = 90
#: Of one process, about each of the two servers: away, back, and what its library adds.
MOST_LINES = 12
WEB, WORKER, BEAT = "web.log", "worker.log", "beat.log"


@pytest.mark.slow
def test_an_outage_logs_few_lines_in_each_process(
    tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    with (
        django_db_blocker.unblock(),
        own_postgres(tmp_path) as postgres,
        own_redis(tmp_path) as redis,
    ):
        environment = {
            "DATABASE_URL": postgres.url,
            "REDIS_URL": redis.url,
            "PITWALL_QUEUE": f"test-{new_id()}",
        }
        with (
            served(tmp_path, environment=environment) as web,
            celery(tmp_path / WORKER, "worker", environment),
            celery(tmp_path / BEAT, "beat", environment),
        ):
            wait_for_lines(tmp_path, ["ready."], names=[WORKER])
            ask(web, 1)
            before = {name: (tmp_path / name).stat().st_size for name in (WEB, WORKER, BEAT)}
            postgres.kill()
            ask(web, AWAY_S)
            redis.kill()
            ask(web, AWAY_S)
            postgres.start()
            redis.start()
            wait_for_lines(tmp_path, ["PostgreSQL is back", "Redis is back"], names=[WEB, WORKER])
            wait_for_lines(tmp_path, ["Redis is back"], names=[BEAT])
            assert web.ask("/login")[0].status == 200
    for name, size in before.items():
        text = (tmp_path / name).read_bytes()[size:].decode()
        assert "Traceback" not in text, text
        assert len(text.splitlines()) <= MOST_LINES, text


def ask(web: Served, seconds: float) -> None:
    """Pages and the API of a visitor, for as long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for path in ("/", "/readyz"):
            web.ask(path)
        web.ask("/api/v1/runs", token="pw_" + 40 * "x")
        time.sleep(0.1)


@contextmanager
def celery(log: Path, kind: str, environment: dict[str, str]) -> Iterator[None]:
    argv = [sys.executable, "-m", "celery", "-A", "tests.support.quick_ticks", kind, "-l", "info"]
    more = ["-s", str(log.with_suffix(".schedule")), "--pidfile="] if kind == "beat" else []
    if kind == "beat":
        argv[-1] = "warning"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*argv, *more], cwd=ROOT, env={**os.environ, **environment}, stdout=out, stderr=out,
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGTERM),
        )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def wait_for_lines(folder: Path, wanted: list[str], *, names: list[str]) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        texts = {name: (folder / name).read_text() for name in names}
        missing = [(name, each) for name in names for each in wanted if each not in texts[name]]
        if not missing:
            return
        assert time.monotonic() < until, f"{missing}: {texts}"
        time.sleep(0.2)


@pytest.fixture(autouse=True)
def own_queue() -> None:
    """Not that of the other tests of this folder: processes have their own."""
