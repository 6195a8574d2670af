"""The cores of a host on its page: the drawing, and the same in words."""

from django.test import Client
from django.urls import reverse

from agents.hostagent.platform.topology import Core, Topology
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from orchestrator.web.hosts.cores import build_core_map
from tests.support.html_pages import element, elements, get_text, values
from tests.support.world import World

FOUR_CORES = Topology(tuple(Core((cpu, cpu + 4)) for cpu in range(4)))


def test_the_cores_of_a_host_are_drawn_and_listed(world: World, alice: Client) -> None:
    record_snapshot(host=world.host, facts={"topology": FOUR_CORES.as_json(), "usable_cpus": "0-7"})
    page = alice.get(reverse("host", args=[world.host.pk]))
    drawing = element(page, ".cores[role=img]")
    assert values(drawing, ".core:nth-child(2) [data-use]", "data-use") == ["server", "server"]
    assert len(elements(drawing, ".core")) == 4
    text = get_text(page)
    assert "Cores 4 cores, 8 CPUs" in text
    assert "Server 1,5 Load tool 2-3,6-7 System and agent 0,4" in text
    assert "usable CPUs 0-7" in text


def test_a_round_without_smt_is_drawn_as_it_runs(world: World, alice: Client) -> None:
    Host.objects.filter(pk=world.host.pk).update(tuning={"smt": "off"})
    record_snapshot(host=world.host, facts={"topology": FOUR_CORES.as_json()})
    text = get_text(alice.get(reverse("host", args=[world.host.pk])))
    assert "Server 1 Load tool 2-3 System and agent 0" in text
    assert "SMT is off during a round" in text


def test_sockets_types_and_cpus_of_others_are_named() -> None:
    topology = Topology(
        cores=(
            Core((0,), others=(1,), kind="performance", clock=0),
            Core((2,), kind="efficiency", clock=2, package=1, node=1),
            Core((3,), kind="efficiency", clock=2, package=1, node=1),
        ),
        kinds=("performance", "efficiency"),
        offline=(4,),
        isolated=(1,),
    )
    core_map = build_core_map({"topology": topology.as_json()}, {})
    assert core_map is not None
    assert [group.title for group in core_map.groups] == [
        "socket 0, NUMA node 0, performance cores",
        "socket 1, NUMA node 1, efficiency cores",
        "offline CPUs",
    ]
    assert core_map.groups[1].cores[1][0].title == "CPU 3: load tool, clock shared with CPU 2"
    legend = {each.title: each.cpus for each in core_map.legend}
    assert (legend["Reserved for others"], legend["Offline"]) == ("1", "4")
    assert "CPUs 1 are isolated (isolcpus)." in core_map.remarks[0]


def test_a_macos_host_says_that_nothing_is_pinned() -> None:
    topology = Topology((Core((0,)),), no_pinning="macOS cannot pin processes to CPUs")
    core_map = build_core_map({"topology": topology.as_json()}, {})
    assert core_map is not None
    assert core_map.remarks == ("Cores are not separate: macOS cannot pin processes to CPUs.",)


def test_a_host_without_a_topology_has_no_drawing(world: World, alice: Client) -> None:
    record_snapshot(host=world.host, facts={"threads": 8})
    assert elements(alice.get(reverse("host", args=[world.host.pk])), ".cores") == []
