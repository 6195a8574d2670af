"""Pitwall's processes and its Redis, each of which can be killed and started alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devstack.places import CHECKOUT
from devstack.processes import Child, Command, Service, spawn
from devstack.redis import Redis
from perf.harness.web_servers import Server, serve_web

START_S = 30.0
STOP_S = 20.0


@dataclass(slots=True, kw_only=True)
class Part:
    """A service that is up again after a restart."""

    service: Service
    child: Child | None = None

    def start(self) -> None:
        self.child = spawn(self.service.command)
        give_up = time.monotonic() + START_S
        while not self.service.ready():
            if self.child.status() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"{self.service.command.name} does not start")
            time.sleep(0.05)

    def kill(self) -> None:
        if self.child is not None:
            self.child.kill_group()

    def stop(self) -> None:
        """Stop it as an administrator does: running work may end."""
        if self.child is None:
            return
        self.child.send(15)
        give_up = time.monotonic() + STOP_S
        while self.child.status() is None and time.monotonic() < give_up:
            time.sleep(0.1)
        self.kill()

    @property
    def pid(self) -> int:
        assert self.child is not None, "it was started"
        return self.child.pid


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """`steady` contains the services that are never killed and whose memory is sampled.

    These are a web server, a worker and the beat. `victim` is the other worker.
    """

    web: Server
    worker: Part
    beat: Part
    victim: Part
    redis: Part

    @property
    def steady(self) -> dict[str, int]:
        return {"web": self.web.pid, "worker": self.worker.pid, "beat": self.beat.pid}


@contextlib.contextmanager
def running_services(folder: Path) -> Iterator[Services]:
    """Yield all services running; stop them at the end of the block."""
    redis = Redis(data=folder / "redis", log=folder / "redis.log")
    env = {
        **os.environ,
        "REDIS_URL": redis.url,
        "PITWALL_ALLOW_LOCAL_REPOSITORIES": "1",
        "PITWALL_LOG_LEVEL": "WARNING",
    }
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, redis.socket.parent, ignore_errors=True)
        queue = _started(stack, Part(service=redis.service()))
        names = ("worker", "victim")
        workers = [_started(stack, _celery(folder, env, name, "worker")) for name in names]
        _started(stack, _build_background_worker(folder, env))
        schedule = ("-s", str(folder / "beat-schedule"))
        beat = _started(stack, _celery(folder, env, "beat", "beat", *schedule))
        web = stack.enter_context(serve_web("orchestrator.config.wsgi", folder, env))
        yield Services(web=web, worker=workers[0], victim=workers[1], beat=beat, redis=queue)


def _started(stack: contextlib.ExitStack, part: Part) -> Part:
    stack.callback(part.stop)
    part.start()
    return part


def _build_background_worker(folder: Path, env: dict[str, str]) -> Part:
    argv = (sys.executable, "-m", "orchestrator.config.background_worker")
    log = folder / "background.log"
    command = Command(name="background", argv=argv, env=env, cwd=CHECKOUT, log=log)
    return Part(service=Service(command=command, ready=lambda: True))


def _celery(folder: Path, env: dict[str, str], name: str, kind: str, *more: str) -> Part:
    argv = [sys.executable, "-m", "celery", "-A", "orchestrator.config", kind, "-l", "warning"]
    argv += ["-n", f"{name}@%h"] if kind == "worker" else []
    command = Command(
        name=name, argv=(*argv, *more), env=env, cwd=CHECKOUT, log=folder / f"{name}.log"
    )
    # Do not wait for it: messages stay in the queue until it takes them.
    return Part(service=Service(command=command, ready=lambda: True))
