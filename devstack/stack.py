"""The parts of Pitwall on a developer's machine, and their order."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devstack.instance import Instance
from devstack.places import CHECKOUT
from devstack.postgres import Postgres
from devstack.processes import Command, Service, log_tail
from devstack.redis import Redis
from devstack.supervisor import ServiceError, Supervisor, describe_status, print_message
from devstack.tools.cache import find_cached
from devstack.tools.finding import find
from devstack.tools.supplies import SUPPLIES

RESTARTS = 5
# The messages of workers to each other, which nothing here reads.
ALONE = ("--without-gossip", "--without-mingle", "--without-heartbeat")
# make passes job settings to its children; ours must not use them.
NOT_PASSED_ON = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "VIRTUAL_ENV")


@contextmanager
def build_stack(instance: Instance, *, careless: bool) -> Iterator[Stack]:
    """Yield a stack before its start; everything that was started ends with the block."""
    supervisor = Supervisor(keep_open=[instance.lock])
    stack = Stack(instance, supervisor, careless=careless)
    try:
        with supervisor:
            yield stack
    finally:
        stack.forget_sockets()


class Stack:
    """An instance's processes, started through a supervisor, and their common environment."""

    def __init__(self, instance: Instance, supervisor: Supervisor, *, careless: bool) -> None:
        self.instance = instance
        self.supervisor = supervisor
        self.careless = careless
        self.env = self._environment()
        self._folders: list[Path] = []

    def start_servers(self) -> None:
        """Start PostgreSQL and Redis, unless their URLs are given from outside."""
        if not os.environ.get("DATABASE_URL"):
            self._start_postgres()
        if not os.environ.get("REDIS_URL"):
            redis = self._redis()
            self._folders.append(redis.socket.parent)
            print_message(f"starting {redis.binary.flavour}")
            self.supervisor.start(redis.service())
            self.env["REDIS_URL"] = redis.url

    def provide_tools(self, *, required: bool = True) -> None:
        """Get oha, and pass on the other load tools of this user's cache.

        It is a separate process, so that a stop during a build ends the build.
        """
        argv = (sys.executable, "-m", "devstack.tools", "--quiet", "oha")
        quiet = Command(name="oha", argv=argv, env=self.env, cwd=CHECKOUT)
        if self.supervisor.run(quiet) == 0:
            self.env["PITWALL_OHA"] = str(find(SUPPLIES["oha"]))
        elif required:
            raise ServiceError("There is no oha; see above.")
        else:
            print_message("continuing without oha")
        for supply in SUPPLIES.values():
            if supply.setting not in self.env and (binary := find_cached(supply)):
                self.env[supply.setting] = str(binary)

    def start_application(self) -> str:
        """Migrate, collect the static files, start web, worker and beat; return the address."""
        self.migrate()
        self._step("collectstatic", "collectstatic", "--noinput")
        # Chosen late: another instance that starts now must not choose the same one.
        port = self.instance.port()
        url = f"http://127.0.0.1:{port}"
        self.env["PITWALL_BASE_URL"] = url
        print_message("starting web, workers and beat")
        self.supervisor.on_stop(self._manage("stop_local_agents", "stop_local_agents"))
        self.supervisor.start(self._web(port, url))
        self.supervisor.start(self._celery("worker", *ALONE))
        self.supervisor.start(self._background_worker())
        schedule = str(self.instance.root / "celerybeat-schedule")
        self.supervisor.start(self._celery("beat", "-s", schedule, level="warning"))
        self.instance.announce(url)
        return url

    def forget_sockets(self) -> None:
        """Remove the folders of sockets, once the servers have ended."""
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        root = self.instance.root
        kept = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
        return {
            **kept,
            "DJANGO_SETTINGS_MODULE": "orchestrator.config.settings",
            "PYTHONUNBUFFERED": "1",
            "PITWALL_SECRET_KEY": self.instance.secret_key(),
            "PITWALL_DATA_DIR": str(root / "data"),
            "PITWALL_STATIC_ROOT": str(root / "static"),
            "PITWALL_ALLOW_LOCAL_REPOSITORIES": "1",
            "PITWALL_ALLOW_LOCAL_HOST": "1",
            # Allow hosts on loopback too: an sshd of the developer's own machine.
            "PITWALL_HOST_NETWORKS": "0.0.0.0/0,::/0",
            "PITWALL_DEBUG": "0",
        }

    def build_running_environment(self, url: str) -> dict[str, str]:
        """Return the environment of the processes of another supervisor for this instance."""
        servers = {"DATABASE_URL": self._postgres().url, "REDIS_URL": self._redis().url}
        given = {name: os.environ[name] for name in servers if os.environ.get(name)}
        return {**self.env, **servers, **given, "PITWALL_BASE_URL": url}

    def migrate(self) -> None:
        print_message("preparing the database")
        self._step("migrate", "migrate", "--noinput")

    def _postgres(self) -> Postgres:
        root, log = self.instance.root, self.instance.log("postgres")
        return Postgres(data=root / "postgres", log=log, careless=self.careless)

    def _redis(self) -> Redis:
        root, log = self.instance.root, self.instance.log("redis")
        return Redis(data=root / "redis", log=log, careless=self.careless)

    def _start_postgres(self) -> None:
        postgres = self._postgres()
        self._folders.append(postgres.sockets)
        postgres.prepare()
        print_message(f"starting PostgreSQL {postgres.binaries.major}")
        self.supervisor.start(postgres.service())
        postgres.create_database()
        self.env["DATABASE_URL"] = postgres.url

    def _step(self, name: str, *args: str) -> None:
        command = self._manage(name, *args)
        status = self.supervisor.run(command)
        if status != 0:
            how = describe_status(status)
            raise ServiceError(f"manage.py {name} failed ({how}). {log_tail(command.log)}")

    def _manage(self, name: str, *args: str) -> Command:
        return self._command(name, str(CHECKOUT / "manage.py"), *args)

    def _command(self, name: str, *args: str) -> Command:
        return Command(
            name=name,
            argv=(sys.executable, *args),
            env=dict(self.env),
            cwd=CHECKOUT,
            log=self.instance.log(name),
        )

    def _web(self, port: int, url: str) -> Service:
        command = self._command(
            "web",
            *("-m", "gunicorn", "--config", "python:orchestrator.config.serving"),
            *("--bind", f"127.0.0.1:{port}", "--workers", "1", "--access-logfile", "-"),
        )
        return Service(command=command, ready=lambda: does_answer(url), restarts=RESTARTS)

    def _celery(self, kind: str, *args: str, level: str = "info") -> Service:
        return self._worker(
            kind, "-m", "celery", "-A", "orchestrator.config", kind, *args, "-l", level
        )

    def _background_worker(self) -> Service:
        return self._worker("background", "-m", "orchestrator.config.background_worker")

    def _worker(self, name: str, *args: str) -> Service:
        command = self._command(name, *args)
        return Service(
            command=command,
            # Do not wait for it: messages stay in the queue until it takes them.
            ready=lambda: True,
            # A warm stop lets tasks end, which takes seconds; SIGQUIT requeues them.
            stop=((signal.SIGTERM, 12.0), (signal.SIGQUIT, 12.0)),
            restarts=RESTARTS,
        )


def does_answer(url: str) -> bool:
    """Return whether a web server answers without an error; a proxy is not used."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False
