"""When an emulated network is not the one that a definition asks for."""

from typing import Any

import pytest

from orchestrator.loadtools.emulated_network import EmulatedNetwork
from orchestrator.loadtools.network_checks import find_differences

REQUESTED = EmulatedNetwork(delay_s=0.02, jitter_s=0.002, loss=0.005, rate_bps=1e8)
NO_LOSS = {"sent": 10_000, "lost": 50}
AS_REQUESTED: dict[str, Any] = {
    "round_trip_s": 0.02,
    "jitter_s": 0.002,
    "lost": {"requests": NO_LOSS, "responses": NO_LOSS},
    "rate_bps": {"requests": 1e8, "responses": 1e8},
    "queues": "",
    "changed": False,
}


def differences(requested: EmulatedNetwork = REQUESTED, **changes: Any) -> list[str]:
    return list(find_differences(requested, {**AS_REQUESTED, **changes}))


def lost(number: int) -> dict[str, Any]:
    return {"lost": {"requests": NO_LOSS, "responses": {"sent": 10_000, "lost": number}}}


@pytest.mark.parametrize(
    ("inside", "outside", "words"),
    [
        ({"round_trip_s": 0.02099}, {"round_trip_s": 0.0211}, "a round trip took 21.1 ms"),
        ({"round_trip_s": 0.01901}, {"round_trip_s": 0.0189}, "a round trip took 18.9 ms"),
        ({"round_trip_s": 0.02}, {"round_trip_s": None}, "no packet came back"),
        ({"jitter_s": 0.00249}, {"jitter_s": 0.0026}, "the jitter was 2.60 ms"),
        ({"jitter_s": 0.002}, {"jitter_s": None}, "too few packets"),
        (lost(81), lost(82), "82 of 10,000 packets of responses were lost (0.82 %)"),
        (lost(19), lost(18), "18 of 10,000 packets"),
        (
            {"rate_bps": {"requests": 1.049e8}},
            {"rate_bps": {"requests": 1.06e8}},
            "the rate of requests was 106 Mbit/s",
        ),
        ({"rate_bps": {"responses": 9.6e7}}, {"rate_bps": None}, "the rate of all packets was 0"),
        ({"changed": False}, {"changed": True}, "something changed it under load"),
    ],
)
def test_the_limits_of_each_property(
    inside: dict[str, Any], outside: dict[str, Any], words: str
) -> None:
    assert differences(**inside) == []
    (difference,) = differences(**outside)
    assert words in difference


def test_a_short_delay_may_differ_by_what_the_machine_needs() -> None:
    requested = EmulatedNetwork()
    none = {"lost": {"requests": {"sent": 100, "lost": 0}}, "rate_bps": None, "jitter_s": None}
    assert differences(requested, round_trip_s=0.00049, **none) == []
    assert differences(requested, round_trip_s=0.00051, **none) == ["a round trip took 510 µs"]
    # An unlimited link loses nothing, apart from one packet by chance.
    assert differences(
        requested, **{**none, "round_trip_s": 0.0, "lost": {"requests": {"sent": 100, "lost": 2}}}
    )
