"""The benchmarks that come with Pitwall: their definitions are taken, and their servers serve."""

import http.client
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devstack.redis import choose_binary
from orchestrator.benchmarks.load_specs import check_loads
from orchestrator.benchmarks.matrix import expand, find_unsupported_reason, resolve_cells
from orchestrator.benchmarks.spec import parse
from tests.support.waiting import wait_for_port

SUITES = Path(__file__).parents[3] / "agents" / "suites"

Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program with `{port}` filled in and waits until it listens; returns the port."""
    with ExitStack() as running:

        def start_one(*argv: str) -> int:
            port = _free_port()
            words = [word.replace("{port}", str(port)) for word in argv]
            process = running.enter_context(subprocess.Popen(words, stdout=subprocess.DEVNULL))
            running.callback(process.terminate)
            wait_for_port(port, process)
            return port

        yield start_one


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _get(connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def _program(suite: str, name: str, *options: str) -> tuple[str, ...]:
    return (sys.executable, str(SUITES / suite / name), "--port", "{port}", *options)


@pytest.mark.parametrize(
    "path", sorted(SUITES.glob("*/benchmark.yaml")), ids=lambda p: p.parent.name
)
def test_definitions_of_suites_are_valid_and_can_use_several_hosts(path: Path) -> None:
    spec = parse(path.read_text())
    check_loads(spec)
    cells = [case.parameters for case in expand(spec)]
    measured = [cell for cell in cells if not find_unsupported_reason(spec, cell)]
    assert {name for shape in resolve_cells(spec, measured) for name in shape.unbound} == set()


def test_hello_redis_reads_from_redis(start: Start) -> None:
    redis = start(str(choose_binary().path), "--port", "{port}", "--save", "")
    port = start(*_program("hello-redis", "server.py", "--redis", f"127.0.0.1:{redis}"))
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(3):
        assert _get(connection, "/hello") == (200, b"Hello, World!")
        assert _get(connection, "/") == (404, b"not here")
    connection.close()


def test_the_proxy_sends_each_connection_to_the_next_replica(start: Start) -> None:
    apps = [start(*_program("hello-replicas", "app.py")) for _ in range(2)]
    to = ",".join(f"127.0.0.1:{port}" for port in [*apps, _free_port()])
    port = start(*_program("hello-replicas", "proxy.py", "--to", to))
    connections = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(3)]
    answers = []
    for connection in connections:
        try:
            answers.append(_get(connection, "/hello"))
        except (ConnectionError, http.client.RemoteDisconnected):
            answers.append((0, b""))
        connection.close()
    # The third is not there. Whose turn comes first depends on the looks whether the proxy listens.
    assert sorted(answers) == [(0, b""), (200, b"Hello, World!"), (200, b"Hello, World!")]


def test_a_framework_server_passes_the_four_checks_of_server_overhead(start: Start) -> None:
    folder = str(SUITES / "server-overhead" / "python")
    gunicorn = (sys.executable, "-m", "gunicorn", "--log-level", "warning", "-k", "gthread")
    port = start(*gunicorn, "app_django:app", "--chdir", folder, "--bind", "127.0.0.1:{port}")
    connection = http.client.HTTPConnection("127.0.0.1", port)
    assert _get(connection, "/hello") == (200, b"Hello, World!")
    assert _get(connection, "/burn") == (200, b"burned")
    assert _get(connection, "/sleep") == (200, b"slept")
    assert _get(connection, "/mb") == (200, b"x" * 1_000_000)
    assert _get(connection, "/nowhere")[0] == 404
    connection.close()
