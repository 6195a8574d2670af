"""The suite http-clients: the rows of its report's two tables, and where its proxy leads to."""

import runpy
from pathlib import Path

import pytest

from orchestrator.benchmarks.load_specs import build_load_specs, list_case_metrics
from orchestrator.benchmarks.matrix import build_labels, expand, resolve
from orchestrator.benchmarks.spec import Spec, parse

SUITE = Path(__file__).parents[3] / "agents" / "suites" / "http-clients"
HIGH_LEVEL = ["requests", "httpx", "niquests"]
SIMPLIFIED = ["requests-core", "httpx-core", "aiohttp", "niquests-core"]
#: As the report's table of clients has it.
HTTP_1_ONLY = ["requests", "requests-core", "aiohttp"]


@pytest.fixture(scope="module")
def spec() -> Spec:
    return parse((SUITE / "benchmark.yaml").read_text())


@pytest.mark.parametrize(
    ("api", "clients"), [("high-level", HIGH_LEVEL), ("simplified", SIMPLIFIED)]
)
def test_every_row_of_the_report_is_a_case(api: str, clients: list[str], spec: Spec) -> None:
    client_names = [
        case.parameters["client"]
        for case in expand(spec)
        if build_labels(spec, case.parameters)["api"] == api
    ]
    assert client_names == clients


def test_each_case_is_the_scenario_of_the_report(spec: Spec) -> None:
    for case in expand(spec):
        (load,) = build_load_specs(spec, case.parameters)
        assert (load.connections, load.requests, load.warmup_s) == (10, 1000, 0)
        assert load.tls
        assert load.protocol == ("h1" if case.parameters["client"] in HTTP_1_ONLY else "h2")
        assert load.client_measured
        assert "requests.rate" in list_case_metrics(resolve(spec, case.parameters))
    assert (spec.rounds, spec.cooldown_s) == (60, 60)
    assert spec.services["httpbin"].count == 6


def test_each_client_has_a_program_and_what_it_needs(spec: Spec) -> None:
    for case in expand(spec):
        client = str(case.parameters["client"])
        assert (SUITE / f"with_{client.replace('-', '_')}.py").is_file()
        resolved = resolve(spec, case.parameters)
        assert resolved.load.command is not None
        # requests must not meet niquests, whose urllib3-future takes the place of urllib3.
        own = client.startswith("requests")
        assert resolved.load.command[0].startswith("{installed}/requests/") is own
        assert resolved.subject.install == spec.subject.install


def test_the_proxy_forwards_to_all_replicas() -> None:
    routes = runpy.run_path(str(SUITE / "proxy.py"))["routes_of"](["a:1", "b:2"], "c.pem", "k.pem")
    (service,) = routes["http"]["services"].values()
    assert service["loadBalancer"]["servers"] == [{"url": "http://a:1"}, {"url": "http://b:2"}]
    (options,) = routes["tls"]["options"].values()
    assert set(options.values()) == {"VersionTLS13"}


def test_installed_packages_are_pinned_and_isolated() -> None:
    pinned = {
        file: [line.split("==")[0] for line in text.splitlines() if line[:1].isalpha()]
        for file in ("requirements.txt", "requirements-requests.txt")
        if (text := (SUITE / file).read_text())
    }
    assert {"niquests", "urllib3-future", "httpx", "aiohttp"} <= set(pinned["requirements.txt"])
    assert {"requests", "urllib3"} <= set(pinned["requirements-requests.txt"])
    assert "niquests" not in pinned["requirements-requests.txt"]
