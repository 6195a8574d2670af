"""The web server in a process of its own, and a client of its API that does not give up."""

import http.client
import json
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from devstack.processes import Child, Command, spawn
from tests.support.engine import ROOT, Engine

_PATIENCE_S = 60


@dataclass(slots=True, kw_only=True)
class Web:
    """gunicorn as `make run` starts it, on a port that stays the same."""

    port: int
    engine: Engine
    child: Child | None = None

    def start(self) -> None:
        argv = ("gunicorn", "orchestrator.config.wsgi", "--bind", f"127.0.0.1:{self.port}")
        options = ("--worker-class", "gthread", "--workers", "1", "--threads", "8")
        self.child = spawn(
            Command(
                name="web",
                argv=(sys.executable, "-m", *argv, *options),
                env=self.engine.environment,
                cwd=ROOT,
                log=self.engine.logs / "web.log",
            )
        )

    def kill(self) -> None:
        if self.child is not None:
            self.child.kill_group()
        self.child = None

    def ask(self, body: dict[str, Any], *, token: str, key: str) -> str:
        """The id of the run; the same request is sent until it is answered."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v1/runs",
            data=json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                "Idempotency-Key": key,
            },
        )
        give_up = time.monotonic() + _PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return str(json.load(answer)["id"])
            except urllib.error.HTTPError as error:
                raise AssertionError(error.read().decode()) from error
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < give_up, "the web server does not come back"
                time.sleep(0.05)


@contextmanager
def running_web(engine: Engine) -> Iterator[Web]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    web = Web(port=port, engine=engine)
    web.start()
    try:
        yield web
    finally:
        web.kill()
