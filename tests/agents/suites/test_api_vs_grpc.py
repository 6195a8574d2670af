"""The suite of an API over HTTP and gRPC: the report's systems, its loads, and its cities."""

import asyncio
import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from orchestrator.benchmarks.load_specs import build_load_specs
from orchestrator.benchmarks.matrix import build_labels, expand, resolve
from orchestrator.benchmarks.spec import Spec, parse
from orchestrator.loadtools.model import LoadSpec

SUITE = Path(__file__).parents[3] / "agents" / "suites" / "api-vs-grpc"


@pytest.fixture(scope="module")
def spec() -> Spec:
    return parse((SUITE / "benchmark.yaml").read_text())


@pytest.fixture
def loads(spec: Spec) -> dict[str, LoadSpec]:
    return {
        str(case.parameters["system"]): build_load_specs(
            resolve(spec, case.parameters), case.parameters
        )[0]
        for case in expand(spec)
    }


def test_suite_has_the_systems_of_the_report(spec: Spec) -> None:
    shown = {
        tuple(build_labels(spec, case.parameters)[name] for name in ("server", "protocol"))
        for case in expand(spec)
    }
    assert shown == {
        ("Uvicorn", "HTTP/1.1"),
        ("Hypercorn", "HTTP/1.1"),
        ("Hypercorn", "HTTP/2 + TLS"),
        ("grpc.aio", "gRPC"),
        ("as committed", "HTTP/1.1"),
    }


def test_http_is_also_measured_at_the_rate_of_grpc(loads: dict[str, LoadSpec]) -> None:
    for system in ("uvicorn-paced", "committed-paced"):
        assert (loads[system].model, loads[system].rate) == ("open", loads["grpc-paced"].rate)
    assert loads["uvicorn-1000"].rate == 1000
    assert loads["committed"].model == "closed"


def test_http_requests_have_random_numbers_without_a_limit(loads: dict[str, LoadSpec]) -> None:
    for system in ("uvicorn", "hypercorn", "hypercorn-h2-tls"):
        load = loads[system]
        assert (load.model, load.connections, load.duration_s) == ("closed", 5, 25)
        assert load.random_path == r"/cities/random\?num=[1-9]{1,4}"


def test_grpc_requests_match_the_report_and_the_http_requests(loads: dict[str, LoadSpec]) -> None:
    paced, like = loads["grpc-paced"], loads["grpc"]
    assert (paced.rate, paced.requests) == (500, 12_500)
    assert paced.grpc is not None
    assert paced.grpc.data == {"num": 500}
    assert (like.model, like.connections, like.duration_s) == ("closed", 5, 25)
    assert like.grpc is not None
    assert len(like.grpc.data) > 10


def test_redis_has_half_a_cpu_and_the_api_one(spec: Spec) -> None:
    for case in expand(spec):
        resolved = resolve(spec, case.parameters)
        assert resolved.services["redis"].limits.cpu_quota == 0.5
        assert resolved.limits.target.cpus == 1


def test_versions_of_the_suite_are_pinned_by_hash(spec: Spec) -> None:
    lines = (SUITE / "requirements.txt").read_text().splitlines()
    pinned = [line for line in lines if line[:1].isalpha()]
    assert all("==" in line and line.endswith("\\") for line in pinned)
    wanted = {line.partition("[")[0] for line in (SUITE / "requirements.in").read_text().split()}
    assert wanted <= {line.partition("==")[0] for line in pinned}


@pytest.fixture(scope="module")
def cities() -> ModuleType:
    spec = importlib.util.spec_from_file_location("suite_cities", SUITE / "cities.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def store() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [sys.executable, str(SUITE / "store.py"), "--port", str(port)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        for _ in range(400):
            assert process.poll() is None
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}/0"
        process.terminate()


def test_cities_of_the_suite_are_reproducible_and_ranked(cities: ModuleType) -> None:
    made = list(cities.made_cities())
    assert made == list(cities.made_cities())
    sizes = [int(city["population"]) for city in made]
    assert len(made) == 10_000
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


def test_a_response_is_one_of_the_largest_cities(cities: ModuleType, store: str) -> None:
    async def ask() -> tuple[dict[str, object], set[int]]:
        known = cities.Cities(store)
        await known.load()
        largest = await known.random_one(1)
        some = {(await known.random_one(3))["population"] for _ in range(60)}
        await known.close()
        return largest, some

    # In a thread of its own: the browser tests leave a running loop in this one.
    with ThreadPoolExecutor(1) as threads:
        largest, some = threads.submit(lambda: asyncio.run(ask())).result()
    top = [int(city["population"]) for city in list(cities.made_cities())[:3]]
    assert largest["population"] == top[0]
    assert some == set(top)
