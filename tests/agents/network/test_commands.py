"""The commands of `ip` and `tc`, and what a host needs for them."""

import random
from pathlib import Path

import pytest

from agents.hostagent.errors import BadPlan
from agents.hostagent.network import capability
from agents.hostagent.network.capability import check_capability, has_capabilities
from agents.hostagent.network.commands import (
    LOAD,
    SERVER,
    build_end_commands,
    build_queue_commands,
)
from agents.hostagent.network.probe import choose_loss_packets, estimate_jitter_s
from agents.hostagent.step.json_node import Node
from agents.hostagent.step.plan import Network
from agents.hostagent.step.trial_parser import parse_network

PLAIN = Network(0.0, 0.0, 0.0, None)
WHOLE = Network(delay_s=0.02, jitter_s=0.002, loss=0.005, rate_bps=1e8)


def test_each_end_delays_by_half_loses_and_then_limits_the_rate() -> None:
    assert [" ".join(words) for words in build_queue_commands(SERVER, WHOLE)] == [
        "tc qdisc add dev server root handle 1: netem limit 100000 delay 10000us 1000us "
        "loss random 0.5%",
        "tc qdisc add dev server parent 1:1 handle 2: tbf rate 100000000bit burst 12500b "
        "limit 637500b",
    ]


def test_only_the_queues_that_are_needed_are_added() -> None:
    assert build_queue_commands(LOAD, PLAIN) == []
    ((*_, kind, _, rate, _, _, _, _),) = build_queue_commands(LOAD, PLAIN._replace(rate_bps=1e6))
    assert (kind, rate) == ("tbf", "1000000bit")
    (loses,) = build_queue_commands(LOAD, PLAIN._replace(loss=0.001))
    assert loses[-3:] == ("loss", "random", "0.1%")


def test_an_end_sends_single_frames_and_knows_its_neighbour() -> None:
    commands = [" ".join(words) for words in build_end_commands(LOAD, PLAIN)]
    assert "ip link set dev load gso_max_segs 1 addrgenmode none" in commands
    assert "ip address add 198.18.0.1/30 dev load" in commands
    neighbour = "ip neighbour add 198.18.0.2 lladdr 02:00:00:00:00:02 dev load nud permanent"
    assert neighbour in commands


def test_lost_packets_are_counted_within_a_limited_time() -> None:
    assert choose_loss_packets(PLAIN) == (100, 20_000)
    assert choose_loss_packets(PLAIN._replace(loss=0.005))[0] == 10_000
    count, per_s = choose_loss_packets(PLAIN._replace(loss=0.001, rate_bps=1e6))
    assert count == pytest.approx(3 * per_s, abs=1)
    # Half of the rate.
    assert per_s * 50 * 8 == pytest.approx(5e5)


def test_the_jitter_of_both_directions_is_estimated_from_the_quartiles() -> None:
    draw = random.Random(7)
    trips = [0.05 + draw.uniform(-0.002, 0.002) + draw.uniform(-0.002, 0.002) for _ in range(400)]
    assert estimate_jitter_s(trips) == pytest.approx(0.004, rel=0.25)
    # A few that another process delayed change little.
    assert estimate_jitter_s([*trips[8:], *[0.5] * 8]) == pytest.approx(0.004, rel=0.3)
    assert estimate_jitter_s(trips[:50]) is None


def test_both_capabilities_are_needed() -> None:
    assert has_capabilities("Name:\tpython3\nCapEff:\t000001ffffffffff\n")
    for lacking in ("000001ffffdfffff", "000001ffffffefff", "0000000000000000"):
        assert not has_capabilities(f"CapInh:\t000001ffffffffff\nCapEff:\t{lacking}\n")
    assert not has_capabilities("")


def test_a_host_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("CapEff:\t0000000000000000\n")
    monkeypatch.setattr(capability, "_STATUS", status)
    assert check_capability() == (
        [], "it needs CAP_NET_ADMIN and CAP_SYS_ADMIN: let Pitwall log in as root"
    )  # fmt: skip
    monkeypatch.setattr(capability, "find_program", lambda name: None)
    assert check_capability() == ([], "ip and tc missing: install the package iproute2")


def test_a_plan_has_no_impossible_network() -> None:
    valid = WHOLE._asdict()
    assert parse_network(Node(valid, "network")) == WHOLE
    for change in ({"jitter_s": 0.03}, {"delay_s": 60.0}, {"loss": 1.0}, {"rate_bps": 0}):
        with pytest.raises(BadPlan, match="network"):
            parse_network(Node({**valid, **change}, "network"))
