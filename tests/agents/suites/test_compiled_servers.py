"""Servers of the suite server-overhead in other languages: built and started as it says.

Those that need packages of others are left to a run of the suite.
"""

import hashlib
import http.client
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from orchestrator.benchmarks.matrix import fill, resolve
from orchestrator.benchmarks.spec import Spec, parse
from tests.support.programs import program
from tests.support.waiting import wait_for_port

SUITE = Path(__file__).parents[3] / "agents" / "suites" / "server-overhead"
SPEC = parse((SUITE / "benchmark.yaml").read_text())
ALONE = (
    # With an empty cache, Go compiles its standard library. The suite protocols tests that as well.
    pytest.param("golang-net-http", marks=pytest.mark.slow),
    "haskell-warp",
    "java-jdk",
    "node-http",
)


@pytest.fixture(params=ALONE)
def connection(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[http.client.HTTPConnection]:
    """To the server, which is ended after the test."""
    spec = resolve(SPEC, {"system": request.param, "scenario": "hello", "rate": 100})
    for name in spec.requires:
        program(name)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    words = {"installed": tmp_path, "tree": SUITE, "bind": "127.0.0.1", "port": port, "cores": 1}
    _install(spec, words)
    with subprocess.Popen(
        _filled(spec.subject.start or [], words), cwd=SUITE, env=_environment(spec)
    ) as process:
        connected = http.client.HTTPConnection("127.0.0.1", port)
        wait_for_port(port, process)
        yield connected
        connected.close()
        process.terminate()


def _install(spec: Spec, words: Mapping[str, object]) -> None:
    for step in spec.subject.install.steps if spec.subject.install else ():
        subprocess.run(_filled(step, words), cwd=SUITE, env=_environment(spec), check=True)


def _filled(command: list[str], words: Mapping[str, object]) -> list[str]:
    return [fill(word, {name: str(value) for name, value in words.items()}) for word in command]


def _environment(spec: Spec) -> dict[str, str]:
    return {**os.environ, **spec.subject.env}


def test_compiled_servers_pass_their_checks(connection: http.client.HTTPConnection) -> None:
    for scenario in SPEC.matrix["scenario"]:
        for check in SPEC.options["scenario"][str(scenario)].checks or []:
            connection.request("GET", check["path"])
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == check.get("status", 200)
            assert body.decode() == check.get("text", body.decode())
            assert check.get("sha256") in (None, hashlib.sha256(body).hexdigest())
