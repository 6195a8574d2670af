"""The real engine for tests: Celery worker and beat as separate processes, with Redis."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import dedent
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from devstack.processes import die_with_parent
from orchestrator.accounts.members import Member
from orchestrator.config import celery_app as app
from orchestrator.core.ids import new_id
from orchestrator.dispatch.checkup import request_checks, run_checks
from orchestrator.dispatch.wakeups import ADVANCE, PUMP
from orchestrator.fleet.checks import CheckList, load_checks
from orchestrator.fleet.models import CheckStep
from orchestrator.fleet.selectors import load_own_host
from orchestrator.runs.cancelling import cancel_case
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import RUN_ENDED, RunState
from tests.support.programs import tool

#: Hosts of tests are on loopback and in networks that the tests create.
ANYWHERE = ("0.0.0.0/0", "::/0")
ROOT = Path(__file__).resolve().parents[2]

#: The states of a run whose jobs measured all their trials: other work on the machine of the tests
#: may make all of them invalid.
MEASURED = frozenset({RunState.FINISHED, RunState.NO_DATA})

#: A plain server; `{extra}` runs for each request, `{start}` before it listens.
#: It waits `{wait_s}` first: a closed loop would otherwise use a CPU that other tests need.
SERVER = dedent(
    """\
    import argparse, hashlib, socketserver, sys, time
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Hello(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        def do_GET(self):
            time.sleep({wait_s})
            {extra}
            body = {body!r}.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        def log_message(self, *args):
            pass

    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--bind", default="127.0.0.1")
    given = parser.parse_args()
    {start}
    # The default of 5 overflows when a load tool connects.
    ThreadingHTTPServer.request_queue_size = 64
    ThreadingHTTPServer((given.bind, given.port), Hello).serve_forever()
    """
)


def server(
    *,
    extra: str = "pass",
    body: str = "Hello, World!",
    start: str = "",
    wait_s: float = 0.01,
) -> dict[str, str]:
    return {"server.py": SERVER.format(extra=extra, body=body, start=start, wait_s=wait_s)}


@dataclass(slots=True, kw_only=True)
class Engine:
    """A worker that includes the beat, on the test's own database; `stop` ends it."""

    data_dir: Path
    logs: Path
    environment: dict[str, str]
    worker: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        """Start both in one process: loading the libraries is what most tests wait for."""
        queue = self.environment["PITWALL_QUEUE"]
        argv = [
            sys.executable, "-m", "celery", "-A", "tests.support.quick_ticks", "worker",
            "-Q", f"{queue},{queue}-background",
            "-B", "-s", str(self.logs / "beat"), "-l", "info", *more,
        ]  # fmt: skip
        with open(self.logs / "worker.log", "ab") as log:
            self.worker = subprocess.Popen(
                argv, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
                # A killed test run leaves no engine behind.
                preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGTERM),
            )  # fmt: skip

    def kill_worker(self) -> None:
        """`kill -9` of the worker, its pool and the beat, as in a crash of the machine."""
        assert self.worker is not None, "it was started"
        os.killpg(self.worker.pid, signal.SIGKILL)
        self.worker.wait()
        self.worker = None

    def stop(self) -> None:
        if self.worker is None:
            return
        self.worker.terminate()
        try:
            self.worker.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(self.worker.pid, signal.SIGKILL)
            self.worker.wait()

    def wake(self, run: Run) -> None:
        """Poll the active jobs of a run, as a request that changes it does."""
        for job in run.jobs.all():
            self._send(ADVANCE, str(job.pk))

    def _send(self, task: str, *words: str) -> None:
        app.send_task(task, args=words, queue=self.environment["PITWALL_QUEUE"])

    def wait_for(self, what: Callable[[], bool], *, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not what():
            if time.monotonic() > deadline:
                tail = (self.logs / "worker.log").read_text(errors="replace")[-3000:]
                raise AssertionError(f"not reached within {timeout_s} s; the worker's log:\n{tail}")
            time.sleep(0.2)

    def wait_until_ready(self, *, timeout_s: float = 120) -> None:
        """Wait until the worker takes tasks. A busy machine needs a while to load the libraries."""
        log = self.logs / "worker.log"
        self.wait_for(lambda: " ready." in log.read_text(errors="replace"), timeout_s=timeout_s)

    def finish(self, run: Run, *, timeout_s: float = 90) -> Run:
        """Wake the engine, as the request that starts a run does; return the run when it ended."""

        def ended() -> bool:
            run.refresh_from_db()
            return run.state in RUN_ENDED

        self._send(PUMP)
        self.wait_for(ended, timeout_s=timeout_s)
        return run


@contextmanager
def running_engine(folder: Path, **environment: str) -> Iterator[Engine]:
    """Yield an engine with its data in `folder`; `environment` overrides the worker's variables.

    Its jobs use oha: the test is skipped if there is none.
    """
    tool("oha")
    data_dir, logs = folder / "data", folder / "logs"
    data_dir.mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    settings.DATA_DIR = data_dir
    engine = Engine(
        data_dir=data_dir,
        logs=logs,
        environment={
            **os.environ,
            "DATABASE_URL": own_database_url(),
            "PITWALL_DATA_DIR": str(data_dir),
            "PITWALL_SECRET_KEY": settings.SECRET_KEY,
            "PITWALL_ALLOW_LOCAL_REPOSITORIES": "1",
            "PITWALL_HOST_NETWORKS": ",".join(ANYWHERE),
            # A separate queue, so that engines of other tests take nothing from it.
            "PITWALL_QUEUE": f"test-{new_id()}",
            **environment,
        },
    )
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()


def assert_measured(run: Run) -> None:
    """Assert that all trials of the run were measured, with nothing to report but disturbances."""
    assert run.state in MEASURED, (run.state, run.message)
    assert not run.message or run.message.startswith("no usable data: "), run.message


def own_database_url() -> str:
    """Return the URL of Django's test database, for other processes."""
    current = connection.settings_dict
    user, host = quote(current["USER"]), quote(str(current["HOST"]), safe="")
    secret = f":{quote(current['PASSWORD'], safe='')}" if current["PASSWORD"] else ""
    port = f"&port={current['PORT']}" if current["PORT"] else ""
    return f"postgresql://{user}{secret}@/{current['NAME']}?host={host}{port}"


#: Longer than a test waits for the end of the run after its cancellation.
_LONG_S = 90


def with_a_long_case(source: str) -> str:
    """Return the usual definition with two cases: a long and a short one."""
    source = source.replace("connections: [4]", f"connections: [4]\n  seconds: [{_LONG_S}, 0.6]")
    return source.replace("duration_s: 0.6", 'duration_s: "{seconds}"')


def cancel_the_long_case(
    engine: Engine, member: Member, run: Run
) -> tuple[QuerySet[Trial], QuerySet[Trial]]:
    """Cancel the long case under load. Return the trials of the long case and of the other."""
    trials = Trial.objects.filter(job__run=run)
    long, short = (trials.filter(case__parameters__seconds=each) for each in (_LONG_S, 0.6))

    def is_under_load() -> bool:
        job = run.jobs.get()
        return job.phase == "measuring" and long.filter(pk=job.current_trial).exists()

    engine.wait_for(is_under_load)
    cancel_case(member=member, run_id=run.pk, case_id=long[0].case_id)
    engine.wake(run)
    return long, short


def check_now(
    *, member: Member, host_id: UUID, again: CheckStep | None = None, timeout_s: float = 60
) -> CheckList:
    """Run checks until one waits for a person, or all have passed."""
    checks = request_checks(member=member, host_id=host_id, again=again)
    deadline = time.monotonic() + timeout_s
    while checks.running:
        assert time.monotonic() < deadline, checks
        # A worker of the test's engine may have been faster.
        run_checks(host_id)
        time.sleep(0.05)
        checks = load_checks(load_own_host(member, host_id))
    return checks
