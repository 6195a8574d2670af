"""What only the web server does: it leaves bodies out, and refuses what it does not read."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlencode

import pytest

from devstack.instance import choose_port
from devstack.places import CHECKOUT
from orchestrator.config.serving import limit_request_line

SCHEMA = "/api/v1/openapi.json"


def ask(port: int, method: str, path: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of gunicorn with the settings that it is deployed with, and one worker."""
    port, log = choose_port(), tmp_path_factory.mktemp("served") / "log"
    argv = [
        *(sys.executable, "-m", "gunicorn", "--config", "python:orchestrator.config.serving"),
        *("--workers", "1", "--bind", f"127.0.0.1:{port}", "--no-control-socket"),
    ]
    # Files of pages need not be collected then.
    variables = {**os.environ, "PITWALL_DEBUG": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(argv, cwd=CHECKOUT, env=variables, stdout=out, stderr=out)
    try:
        _wait_for(port, process, log)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            ask(port, "HEAD", SCHEMA)
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)


def test_a_head_has_the_length_of_the_body_that_is_not_sent(port: int) -> None:
    whole, body = ask(port, "GET", SCHEMA)
    head, nothing = ask(port, "HEAD", SCHEMA)
    assert (head.status, nothing) == (200, b"")
    assert head.headers["Content-Length"] == whole.headers["Content-Length"] == str(len(body))


def test_an_address_that_is_too_long_is_refused_by_a_problem_document(port: int) -> None:
    for size in (limit_request_line, 60_000):
        answer, body = ask(port, "GET", f"/api/v1/runs?{urlencode({'benchmark': 'b' * size})}")
        assert (answer.status, answer.reason) == (414, "URI Too Long")
        assert answer.headers["Content-Type"] == "application/problem+json"
        detail = f"the first line of this request has more than {limit_request_line} bytes"
        assert json.loads(body)["detail"].startswith(detail)
    read, _ = ask(port, "GET", f"/api/v1/runs?{urlencode({'benchmark': 'b' * 7000})}")
    assert read.status == 401
