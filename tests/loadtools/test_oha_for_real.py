"""oha itself against a server in this process, for less than a second each."""

import json
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agents.hostagent.readers import oha
from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.registry import TOOLS
from orchestrator.stats.histogram import Histogram
from tests.support.programs import tool

OHA = str(tool("oha"))
LOAD = LoadSpec(
    path="/hello{x}", connections=2, duration_s=0.5, warmup_s=0.1, body="-d", method="POST"
)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    status = 200

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.seen.add((self.path, body, self.headers["accept-encoding"]))
        self.send_response(self.server.status)
        self.send_header("content-length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def measure(spec, server, folder):
    """The agent's work in a few lines: start oha, reduce its rows, read the trial."""
    words = {
        "{tool}": str(tool("oha")),
        "{address}": "127.0.0.1",
        "{port}": str(server.server_port),
        "{out}": str(folder / "out.json"),
        "{rows}": str(folder / "rows.db"),
    }
    for invocation in TOOLS["oha"].invocations(spec, 1):
        argv = [_filled(argument, words) for argument in invocation.argv]
        started = time.time()
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=invocation.wall_limit_s
        )
        assert done.returncode == 0, done.stderr
        result = {
            "argv": argv,
            "rc": 0,
            "signal": None,
            "load_started_at": started,
            "load_ended_at": time.time(),
            "tool_cpus": 1,
            "tool": {"name": "oha", "version": "1.16.0"},
        }
    output = (folder / "out.json").read_bytes()
    rows = reduced(folder / "rows.db", invocation.warmup_s)
    return TOOLS["oha"].parse(spec, output, rows, result)


def _filled(argument, words):
    for word, text in words.items():
        argument = argument.replace(word, text)
    return argument


def reduced(path, warmup_s):
    connection = sqlite3.connect(path)
    rows = connection.execute('select "start", "end", duration, status, len_bytes from oha')
    rows = rows.fetchall()
    connection.close()
    durations = sorted(row[2] for row in rows)
    names = (10, 25, 50, 75, 90, 95, 99, 99.9, 99.99)
    counted = [row for row in rows if row[0] >= warmup_s]
    return {
        "all": {
            "n": len(rows),
            "percentiles": {
                f"p{name:g}": durations[int(name / 100 * len(durations))] for name in names
            },
        },
        "window": {"start_s": warmup_s, "end_s": max((row[1] for row in counted), default=None)},
        "ok": _part(row[2] for row in counted if 200 <= row[3] < 400),
        "other": _part(row[2] for row in counted if not 200 <= row[3] < 400),
        "bytes": sum(row[4] for row in counted),
        "slices": [],
    }


def _part(durations):
    counts = sorted(Counter(round(duration * 1e6) for duration in durations).items())
    return {"value_us": [value for value, _ in counts], "count": [count for _, count in counts]}


def serious(reading):
    """Codes that a busy machine cannot cause."""
    return {each.code for each in reading.validity.reasons} - {"littles_law", "tool_bound"}


def test_a_closed_load_is_measured_and_read(server, tmp_path):
    reading = measure(LOAD, server, tmp_path)
    assert serious(reading) == set()
    assert server.seen == {("/hello%7Bx%7D", "-d", "identity")}
    assert reading.by_status[200] >= reading.ok.n > 0
    assert reading.readings["requests.rate"] == pytest.approx(reading.ok.n / 0.5)
    assert reading.readings["throughput.bytes_per_s"] == pytest.approx(reading.ok.n * 5 / 0.5)
    assert reading.readings["latency.min"] <= reading.readings["latency.p50"]
    assert reading.readings["connect.mean"] > 0


@pytest.mark.quiet
def test_an_open_load_sends_due_requests(server, tmp_path):
    reading = measure(replace(LOAD, model="open", rate=100.0), server, tmp_path)
    assert reading.load.model == "open"
    assert reading.planned == pytest.approx(50)
    # A tick more or less at either end of so short a window.
    assert reading.ok.n == pytest.approx(50, abs=3)
    assert serious(reading) <= {"underdelivered"}


def test_a_count_of_requests_is_counted_without_its_warm_up(server, tmp_path):
    reading = measure(replace(LOAD, duration_s=None, requests=60, warmup_s=0.1), server, tmp_path)
    assert serious(reading) == set()
    assert reading.ok.n == 60
    assert reading.window_end_s == pytest.approx(60 / reading.readings["requests.rate"])


def test_a_histogram_of_the_rows_has_the_tools_own_percentiles(server, tmp_path):
    measure(replace(LOAD, warmup_s=0.0), server, tmp_path)
    own = json.loads((tmp_path / "out.json").read_bytes())["latencyPercentiles"]
    rows = oha.read(tmp_path, tmp_path / "out.json", tmp_path / "rows.db", 0.0)
    whole = Histogram.from_counts(rows["ok"]["value_us"], rows["ok"]["count"])
    n = rows["all"]["n"]
    assert whole.total_count == n > 100
    for name, seconds in own.items():
        # oha takes sorted[floor(p/100 · n)]: the same rank as the nearest rank.
        rank = min(n, int(float(name[1:]) / 100 * n) + 1)
        found_us = whole.percentile(100 * rank / n)
        assert found_us == pytest.approx(seconds * 1e6, rel=1e-3, abs=1)


def test_bad_responses_are_counted_though_oha_calls_them_success(server, tmp_path):
    server.status = 500
    reading = measure(LOAD, server, tmp_path)
    assert reading.readings["oha.summary.successRate"] == 1.0
    assert reading.readings["success.ratio"] == 0.0
    assert "requests.rate" not in reading.readings
    assert serious(reading) == {"http_errors"}
