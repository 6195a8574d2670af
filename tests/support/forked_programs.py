"""Python programs that start as forks of one process, which has loaded the libraries.

A Celery worker needs more than a second of CPU time to start, most of it for libraries, and most
tests of the engine start one. The fork server of the standard library loads them once for each
process of the tests. Pitwall's own modules are loaded after the fork, since they read the
environment.
"""

import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from devstack.processes import die_with_parent

LIBRARIES = (
    "celery.bin.worker", "celery.apps.worker", "cryptography.x509", "django.db.models",
    "django.contrib.auth.hashers", "kombu.transport.redis", "paramiko", "psycopg",
    "pydantic", "scipy.special", "urllib3", "yaml",
)  # fmt: skip
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(LIBRARIES))


def start_module(
    name: str, *arguments: str, env: Mapping[str, str], folder: Path, log: Path
) -> ForkServerProcess:
    """Start `python -m NAME` in a session of its own, which ends with the tests."""
    process = _CONTEXT.Process(target=_run, args=(name, arguments, dict(env), folder, log))
    process.start()
    return process


def _run(
    name: str, arguments: Sequence[str], env: Mapping[str, str], folder: Path, log: Path
) -> None:
    os.setsid()
    # The fork server ends when the process of the tests ends.
    die_with_parent(os.getppid(), signal.SIGTERM)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output, stream.fileno())
    os.close(output)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[1:] = arguments
    runpy.run_module(name, run_name="__main__", alter_sys=True)
