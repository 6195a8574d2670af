"""The server with known delays: they are computed, observed and reported."""

import http.client
import importlib.util
import json
import math
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orchestrator.benchmarks.spec import parse

SUITE = Path(__file__).parents[3] / "agents" / "suites" / "known-latency"


@pytest.fixture(scope="module")
def server() -> ModuleType:
    spec = importlib.util.spec_from_file_location("known_latency", SUITE / "server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Running:
    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        argv = [sys.executable, str(SUITE / "server.py"), "--port", str(self.port)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE)

    @contextmanager
    def connect(self) -> Iterator[http.client.HTTPConnection]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            for _ in range(400):
                assert self.process.poll() is None
                try:
                    connection.connect()
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            yield connection

    def ask(self, requests: int) -> None:
        """So many requests, one after the other, over a connection of their own."""
        with self.connect() as connection:
            for _ in range(requests):
                assert get(connection, "/known") == (200, b"known")

    def stats(self) -> tuple[int, dict[str, Any]]:
        with self.connect() as connection:
            status, body = get(connection, "/stats")
        return status, json.loads(body)

    def end(self) -> str:
        """What it said by its end."""
        self.process.terminate()
        return self.process.communicate(timeout=30)[0].decode()


def get(connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.fixture
def running() -> Iterator[Running]:
    made = Running()
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.communicate()


def test_known_values_of_the_definition_match_the_server(server: ModuleType) -> None:
    spec = parse((SUITE / "benchmark.yaml").read_text())
    truth = {f"latency.{name}": value for name, value in server.figures(server.cycle()).items()}
    assert spec.known == pytest.approx(truth, rel=1e-4)


def test_known_latency_is_lognormal_with_p99_in_the_middle_of_the_tail(server: ModuleType) -> None:
    delays = sorted(server.cycle())
    assert delays == server.body() + server.tail()
    logs = [math.log(delay) for delay in server.body()]
    mean = sum(logs) / len(logs)
    spread = math.sqrt(sum((log - mean) ** 2 for log in logs) / len(logs))
    assert math.exp(mean) == pytest.approx(server.MEDIAN_S)
    assert spread == pytest.approx(server.SPREAD, rel=0.01)
    assert server.percentile(delays, 99) == server.tail()[9]


def test_parts_of_the_cycle_are_representative_samples(server: ModuleType) -> None:
    cycle = server.cycle()
    truth = server.figures(cycle)
    for start in range(0, 1000, 111):
        for length in range(2000, 3000, 97):
            part = (cycle * 4)[start : start + length]
            assert server.figures(part) == pytest.approx(truth, rel=0.01)


def test_known_latency_server_keeps_its_delays(server: ModuleType, running: Running) -> None:
    askers = [threading.Thread(target=running.ask, args=(40,)) for _ in range(5)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    status, stats = running.stats()
    assert stats["requests"] == 200
    assert stats["wanted"] == pytest.approx(server.figures(server.cycle()[:200]))
    for name, wanted in stats["wanted"].items():
        # Never early; and late only by what a busy machine of tests may take.
        assert 0.999 < stats["kept"][name] / wanted < 2, name
    assert (status, stats["holds"]) in [(200, True), (503, False)]
    off = max(abs(stats["kept"][name] / wanted - 1) for name, wanted in stats["wanted"].items())
    assert stats["holds"] is (off <= stats["resolution"])


def test_known_latency_server_reports_when_delays_were_wrong(running: Running) -> None:
    # After 25 requests a delay of the tail comes, in which the server is held.
    running.ask(25)
    with running.connect() as connection:
        connection.request("GET", "/known")
        time.sleep(0.05)
        running.process.send_signal(signal.SIGSTOP)
        time.sleep(0.6)
        running.process.send_signal(signal.SIGCONT)
        assert connection.getresponse().status == 200
    status, stats = running.stats()
    assert (status, stats["holds"]) == (503, False)
    assert stats["kept"]["p99"] > stats["wanted"]["p99"]


def test_known_latency_server_reports_the_same_at_its_end(running: Running) -> None:
    running.ask(3)
    _, stats = running.stats()
    assert json.loads(running.end().splitlines()[-1]) == stats
    assert running.process.returncode == 0


def test_known_latency_server_reports_no_error_before_the_first_request(running: Running) -> None:
    status, stats = running.stats()
    assert (status, stats["requests"], stats["holds"]) == (200, 0, True)
    with running.connect() as connection:
        assert get(connection, "/ready") == (200, b"")
        assert get(connection, "/other") == (404, b"")
