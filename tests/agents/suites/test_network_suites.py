"""The suites with emulated networks: their networks, and axes that a chart of lines can use."""

from pathlib import Path

import pytest

from orchestrator.benchmarks.load_specs import build_load_specs
from orchestrator.benchmarks.matrix import expand, is_baseline, resolve, resolve_network
from orchestrator.benchmarks.spec import Spec, parse

SUITES = Path(__file__).parents[3] / "agents" / "suites"


def read_suite(name: str) -> Spec:
    return parse((SUITES / name / "benchmark.yaml").read_text())


def test_protocols_differ_in_nothing_but_their_connections() -> None:
    spec = read_suite("network-protocols")
    seen = set()
    for case in expand(spec):
        (load,) = build_load_specs(spec, case.parameters)
        assert load.network == resolve_network(spec, case.parameters)
        assert load.network is not None
        seen.add((load.protocol, load.network.delay_s, load.network.loss))
        assert (load.tls, load.at_once, load.response_bytes) == (True, 16, (65536, 65536))
        assert is_baseline(spec, case.parameters) is (load.protocol == "h1")
        # A lost packet is one packet of QUIC.
        env = resolve(spec, case.parameters).subject.env
        assert env["QUIC_GO_DISABLE_GSO"] == "true"
    assert len(seen) == 3 * 3 * 3


def test_each_level_of_compression_is_measured_at_each_rate() -> None:
    spec = read_suite("network-compression")
    rates: dict[tuple[object, ...], list[float | None]] = {}
    for case in expand(spec):
        network = resolve_network(spec, case.parameters)
        assert network is not None
        assert network.properties == {"rate"}
        line = (case.parameters["compression"], case.parameters["level"])
        rates.setdefault(line, []).append(network.rate_bps)
    assert set(map(tuple, rates.values())) == {(2e6, 1e7, 5e7, 2e8, 1e9)}
    assert len(rates) == 1 + 4 + 5 + 5
    # The numeric axis of the chart, and of the report's rows.
    assert all(isinstance(value, int) for value in spec.matrix["mbit"])


@pytest.mark.parametrize("file", ["messages.py"])
def test_the_messages_are_those_of_the_suite_of_compression(file: str) -> None:
    ours, theirs = (SUITES / name / file for name in ("network-compression", "restful-compression"))
    assert ours.read_bytes() == theirs.read_bytes()
