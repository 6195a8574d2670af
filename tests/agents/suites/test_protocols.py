"""The suite protocols: the scenarios of its report, and that its server keeps objects."""

import http.client
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.programs import find_program
from orchestrator.benchmarks.load_specs import build_load_specs, estimate_trial_s
from orchestrator.benchmarks.matrix import CaseSpec, expand, is_baseline
from orchestrator.benchmarks.spec import Spec, parse
from orchestrator.loadtools.model import LoadSpec
from tests.support.programs import missing
from tests.support.waiting import wait_for_port

SUITE = Path(__file__).parents[3] / "agents" / "suites" / "protocols"
PROTOCOLS = ["h1", "h2", "h3"]
#: Size, requests at once, operations.
SCENARIOS = [(1024, 10, 100), (1024, 50, 500), (65536, 10, 50)]


@pytest.fixture(scope="module")
def spec() -> Spec:
    return parse((SUITE / "benchmark.yaml").read_text())


def loads(spec: Spec) -> list[tuple[CaseSpec, LoadSpec]]:
    return [(case, build_load_specs(spec, case.parameters)[0]) for case in expand(spec)]


def test_every_row_of_the_report_is_a_case(spec: Spec) -> None:
    rows = [
        (load.protocol, len(load.body or ""), load.at_once, load.requests)
        for _, load in loads(spec)
        if load.requests is not None
    ]
    assert rows == [(protocol, *scenario) for protocol in PROTOCOLS for scenario in SCENARIOS]


def test_each_case_has_a_longer_valid_variant(spec: Spec) -> None:
    rows = [
        (load.protocol, len(load.body or ""), load.at_once)
        for _, load in loads(spec)
        if load.duration_s == 20
    ]
    assert rows == [(protocol, *scenario[:2]) for protocol in PROTOCOLS for scenario in SCENARIOS]


def test_http2_and_http3_share_one_connection_like_go_clients(spec: Spec) -> None:
    for _, load in loads(spec):
        assert load.tls is (load.protocol == "h3")
        assert (load.streams == 1) is (load.protocol == "h1")
        assert (load.connections == 1) is (load.protocol != "h1")


def test_the_end_over_http3_is_estimated_from_the_idle_timeout_of_the_server(spec: Spec) -> None:
    (declared,) = {load.idle_s for _, load in loads(spec) if load.protocol == "h3"}
    source = (SUITE / "listening.go").read_text()
    assert f"const idleQUIC = {declared:g} * time.Second" in source
    for case, load in loads(spec):
        assert load.idle_s == (declared if load.protocol == "h3" else 0)
        if load.duration_s is not None:
            over_h1 = estimate_trial_s(spec, {**case.parameters, "protocol": "h1"})
            assert estimate_trial_s(spec, case.parameters) == over_h1 + load.idle_s


def test_http1_is_the_baseline(spec: Spec) -> None:
    for case, load in loads(spec):
        assert is_baseline(spec, case.parameters) is (load.protocol == "h1")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The object server, built."""
    go = find_program("go") or missing("go")
    built = tmp_path_factory.mktemp("protocols") / "server"
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    subprocess.run([go, "build", "-o", built, "."], cwd=SUITE, env=env, check=True)
    return built


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the server makes the folder of its objects."""
    return tmp_path


@pytest.fixture
def server(program: Path, folder: Path) -> Iterator[http.client.HTTPConnection]:
    """A connection to the server, which is ended after the test."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with subprocess.Popen([program, "--port", str(port), "--data", folder]) as process:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        wait_for_port(port, process)
        yield connection
        connection.close()
        process.terminate()
    assert not list(folder.iterdir())


def _ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes]:
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_server_stores_replaces_and_deletes_objects(
    server: http.client.HTTPConnection, folder: Path
) -> None:
    large = bytes(range(256)) * 256
    assert _ask(server, "GET", "/objects/one")[0] == 404
    assert _ask(server, "PUT", "/objects/one", b"first") == (200, b"")
    assert _ask(server, "PUT", "/objects/one", large) == (200, b"")
    assert _ask(server, "GET", "/objects/one") == (200, large)
    assert [path.name for path in folder.glob("objects-*/*")] == ["one"]
    assert _ask(server, "DELETE", "/objects/one") == (204, b"")
    assert _ask(server, "DELETE", "/objects/one")[0] == 404


@pytest.mark.parametrize("key", ["..%2Fescaped", ".hidden", "a%20b", "x" * 101])
def test_a_key_cannot_name_another_file(server: http.client.HTTPConnection, key: str) -> None:
    assert _ask(server, "PUT", f"/objects/{key}", b"x")[0] == 400
