"""Properties of all placements, on topologies that hypothesis makes up."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.hostagent.platform.placement import UNKNOWN_CPUS, Placement, Share, TooFewCpus, place
from agents.hostagent.platform.topology import Core, Topology

KINDS = ("performance", "efficiency")


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Up to 12 cores with up to 4 CPUs, some of which belong to others, in any numbering."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=12))
    numbers = draw(st.permutations(range(sum(sizes))))
    cores = []
    for size in sizes:
        cpus, numbers = sorted(numbers[:size]), numbers[size:]
        allowed = draw(st.integers(0, size))
        cores.append(
            Core(
                cpus=tuple(cpus[:allowed]),
                others=tuple(cpus[allowed:]),
                node=draw(st.integers(0, 1)),
                kind=draw(st.sampled_from(KINDS)),
            )
        )
    return Topology(tuple(sorted(cores, key=lambda core: core.all_cpus)), KINDS)


shares = st.lists(
    st.one_of(st.none(), st.integers(1, 6)), min_size=1, max_size=4
).map(
    lambda numbers: [
        Share(name, cpus)
        for name, cpus in zip(("server", "tool", "service:a", "service:b"), numbers, strict=False)
    ]
)  # fmt: skip


def find_users(placement: Placement, core: Core) -> tuple[str, ...]:
    return tuple(
        sorted(
            name
            for name, cpus in placement.cpus.items()
            if not set(cpus or ()).isdisjoint(core.cpus)
        )
    )


@settings(max_examples=300)
@given(topologies(), shares)
def test_no_core_is_shared_unless_the_placement_says_so(
    topology: Topology, shares: list[Share]
) -> None:
    try:
        placement = place(topology, shares)
    except TooFewCpus:
        assert sum(share.cpus or 0 for share in shares) > len(topology.cpus)
        return
    for share in shares:
        cpus = placement.cpus[share.name]
        assert cpus is None or (cpus and set(cpus) <= set(topology.cpus))
        assert share.cpus is None or len(cpus or ()) == share.cpus
    for core in topology.usable:
        users = find_users(placement, core)
        assert len(users) < 2 or (users in placement.shared and placement.problem)
        if users:
            assert set(placement.system).isdisjoint(core.cpus)
            used = {cpu for name in users for cpu in placement.cpus[name] or ()}
            assert set(core.all_cpus) <= used | set(placement.siblings)
    everywhere = [name for name, cpus in placement.cpus.items() if cpus is None]
    assert not everywhere or len(shares) == 1 or placement.problem == UNKNOWN_CPUS


def test_macos_pins_nothing_and_says_so() -> None:
    topology = Topology((Core((0,)), Core((1,))), no_pinning="macOS cannot pin processes to CPUs")
    placement = place(topology, [Share("server"), Share("tool", 1)])
    assert placement.cpus == {"server": None, "tool": (0,)}
    assert placement.problem == "macOS cannot pin processes to CPUs"


def test_more_cpus_than_the_host_has_are_refused() -> None:
    with pytest.raises(TooFewCpus, match="want 4 CPUs of one host, and it has 3"):
        place(Topology((Core((0, 1)), Core((2,)))), [Share("server", 2), Share("tool", 2)])
