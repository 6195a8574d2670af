"""The network of a definition: its values, axes and errors."""

import json

import pytest

from orchestrator.benchmarks.load_specs import build_load_specs, check_loads, estimate_trial_s
from orchestrator.benchmarks.matrix import expand, resolve_network, select_measured_part
from orchestrator.benchmarks.spec import from_data, parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.emulated_network import EmulatedNetwork

BASE = """\
version: 1
title: A link
subject: {start: [server, "{bind}", "{port}"]}
load: {path: /, duration_s: 1, warmup_s: 0}
"""
ALL = "network: {delay: 20 ms, jitter: 2 ms, loss: 0.5 %, rate: 100 Mbit/s}\n"


def list_networks(more: str) -> list[str]:
    spec = parse(BASE + more)
    check_loads(spec)
    return [str(resolve_network(spec, case.parameters)) for case in expand(spec)]


def test_all_properties_have_units() -> None:
    spec = parse(BASE + ALL)
    network = resolve_network(spec, {})
    assert network == EmulatedNetwork(delay_s=0.02, jitter_s=0.002, loss=0.005, rate_bps=1e8)
    assert str(network) == "20.0 ms ± 2.00 ms round trip, 0.5 % loss, 100 Mbit/s"
    assert network.properties == {"delay", "jitter", "loss", "rate"}
    assert build_load_specs(spec, {})[0].network == network
    assert estimate_trial_s(spec, {}) > estimate_trial_s(parse(BASE), {}) + 1
    assert from_data(json.loads(json.dumps(spec.model_dump(mode="json")))) == spec


def test_axes_complete_values_so_that_they_stay_numbers() -> None:
    axes = 'network: {delay: "{ms} ms", rate: "{mbit} Mbit/s"}\nmatrix: {ms: [0, 5.5], mbit: [10]}'
    assert list_networks(axes) == ["no delay, 10 Mbit/s", "5.50 ms round trip, 10 Mbit/s"]


def test_options_give_a_link_a_name() -> None:
    named = """\
matrix: {link: [none, local, dsl]}
options:
  link: {local: {network: {delay: 0 ms}}, dsl: {network: {delay: 30 ms, rate: 16 Mbit/s}}}
"""
    assert list_networks(named) == ["None", "no delay", "30.0 ms round trip, 16 Mbit/s"]
    spec = parse(BASE + named)
    parts = [select_measured_part(spec, case.parameters) for case in expand(spec)]
    assert len({json.dumps(part, sort_keys=True) for part in parts}) == 3


def test_all_faults_are_reported_at_once_with_their_fields() -> None:
    text = "network: {delay: 20, loss: 0.05 %, rate: 9 bit/s, jitter: 3 s, lost: 1 %}"
    with pytest.raises(InvalidRequestError) as refused:
        parse(BASE + text)
    faults = dict(refused.value.faults)
    assert set(faults) == {
        f"network.{name}" for name in ("delay", "loss", "rate", "jitter", "lost")
    }
    assert "give the unit, such as 20 ms" in faults["network.delay"]
    assert "0 %, or 0.1 % to 50 %" in faults["network.loss"]
    assert "a rate such as 100 Mbit/s" in faults["network.rate"]
    assert "did you mean loss?" in faults["network.lost"] or "unknown" in faults["network.lost"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("network: {delay: 1 ms, jitter: 2 ms}", "network.jitter: expected at most the delay"),
        ("network: {jitter: 2 ms}", "network.jitter: expected at most the delay"),
        ("network: {delay: 3 s}", "network.delay: expected 0 ms, or 1 ms to 2 s"),
        ("network: {rate: 0 Mbit/s}", "leave the rate out"),
        ('network: {delay: "{x} ms"}', "network.delay: {x} is not an axis"),
        ('network: {delay: "{x} ms"}\nmatrix: {x: [1, fast]}', "network.delay: expected a time"),
        ('network: {loss: "{x} %"}\nmatrix: {x: [0, 90]}', "{'x': 90} do not fit: network.loss"),
    ],
)
def test_impossible_networks_are_refused(more: str, words: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        check_loads(parse(BASE + more))
    assert words in str(refused.value)
